/** The database of this deployment, for commands. Servers may run beside a command. */
import { resolve } from "node:path";
import type { Command } from "commander";
import { databaseName } from "./banner.ts";
import { commandLogger } from "./flags.ts";
import { encryptionOf, objectStoreOf, unusedDataWarning } from "../platform/config/options.ts";
import {
  graphConfigFileOf,
  mergeEnvironments,
  resolveOptions,
  type Environment,
} from "../platform/config/resolve.ts";
import { openDatabase, type Database } from "../platform/database/database.ts";
import { startEmbeddedPostgres, type EmbeddedPostgres } from "../platform/database/embedded/embedded.ts";
import { hasCluster } from "../platform/database/embedded/place.ts";
import { migrate } from "../platform/database/migrate.ts";
import { isUnusable, unusableReason } from "../platform/database/passing-faults.ts";
import { StartError } from "../platform/domain/errors.ts";
import { openCipher, type Cipher } from "../platform/encryption/cipher.ts";
import { openObjectStore } from "../platform/database/object-store.ts";
import { fileExists } from "../platform/lib/file-exists.ts";
import type { Logger } from "../platform/lib/logger.ts";
import { readGraphConfig } from "../graphs/project/langgraph-json.ts";
import type { CommandSurroundings } from "./command.ts";

export interface DatabaseFlags {
  databaseUrl?: string | undefined;
  databaseSchema?: string | undefined;
  data?: string | undefined;
  config?: string | undefined;
  json?: true;
}

export const onDatabase = (command: Command): Command =>
  command
    .option("--database-url <url>", "the database's address, not of a pooler in transaction mode")
    .option("--database-schema <name>", "the schema of its tables")
    .option("--data <folder>", "folder of the embedded PostgreSQL, if no database is named")
    .option("--config <path>", "the langgraph.json; its env may name the database");

/** As a server does. The file may be missing, but not invalid. */
const completed = async (flags: DatabaseFlags, environment: Environment): Promise<Environment> => {
  const file = graphConfigFileOf(environment, flags.config);
  if (flags.config === undefined && !(await fileExists(file))) return environment;
  const project = await readGraphConfig(file);
  return mergeEnvironments(project.environment, environment);
};

const ENCRYPTION_NAMES = ["encryptionKeys", "encryptedMetadataKeys"] as const;

const ownEncryption = (environment: Environment) =>
  encryptionOf(resolveOptions(ENCRYPTION_NAMES, {}, environment));

/** Undefined without a bucket. */
export const objectStoreIn = (environment: Environment) =>
  objectStoreOf(
    resolveOptions(["objectStoreUrl", "objectStoreEndpoint", "objectStoreRegion"], {}, environment),
  );

/** Undefined without keys. */
export const cipherOf = (environment: Environment): Cipher | undefined =>
  openCipher(ownEncryption(environment));

export interface DatabasePlace {
  /** Includes `env` of langgraph.json. */
  environment: Environment;
  /** Undefined: the embedded PostgreSQL. */
  url: string | undefined;
  schema: string;
  /** Absolute; unused if there is a `url`. */
  dataFolder: string;
  warning: string | undefined;
}

/** @throws StartError */
export const databasePlaceOf = (flags: DatabaseFlags, given: Environment): DatabasePlace => {
  const { databaseUrl, databaseSchema, data } = flags;
  // The flag replaces both addresses.
  const environment = databaseUrl === undefined ? given : { ...given, DATABASE_DIRECT_URL: "" };
  const options = resolveOptions(
    ["databaseUrl", "databaseDirectUrl", "databaseSchema", "dataFolder"],
    { databaseUrl, databaseSchema, dataFolder: data },
    environment,
  );
  // Migrations need a session, which a pooler in transaction mode does not give.
  const url = options.databaseDirectUrl ?? options.databaseUrl;
  return {
    environment,
    url,
    schema: options.databaseSchema,
    dataFolder: resolve(options.dataFolder),
    warning: unusedDataWarning(data !== undefined, url),
  };
};

/** Opens nothing. @throws StartError */
export const findOwnDatabase = async (flags: DatabaseFlags, given: Environment): Promise<DatabasePlace> =>
  databasePlaceOf(flags, await completed(flags, given));

export const placeText = ({ url, dataFolder }: DatabasePlace): string =>
  url === undefined ? `the embedded PostgreSQL in ${dataFolder}` : `the database ${databaseName(url)}`;

/** `close` stops the embedded PostgreSQL, unless other processes use it. Does not connect to another database. */
export const reachOwnDatabase = async (
  { url, dataFolder, warning }: DatabasePlace,
  logger: Logger,
): Promise<Pick<EmbeddedPostgres, "connectionString" | "close"> & { dataFolder?: string }> => {
  if (warning !== undefined) logger.warn(warning);
  if (url === undefined) {
    // The user may have forgotten DATABASE_URL, or be in another folder than the servers.
    if (!(await hasCluster(dataFolder)))
      logger.warn(`no database is named, so a new one is made in ${dataFolder} (see --database-url)`);
    return await startEmbeddedPostgres({ dataFolder, logger });
  }
  return { connectionString: url, close: () => Promise.resolve() };
};

export const explainUnusable = (error: unknown, connectionString: string): unknown => {
  if (!isUnusable(error)) return error;
  const reason = unusableReason(error);
  return new StartError(`The database ${databaseName(connectionString)} can't be used: ${reason}.`, {
    cause: error,
  });
};

/**
 * Starts an embedded PostgreSQL that does not run, and stops it afterwards.
 * @throws StartError if the database can't be used
 */
export const withReached = async <Result>(
  place: DatabasePlace,
  logger: Logger,
  work: (connectionString: string) => Promise<Result>,
): Promise<Result> => {
  const { connectionString, close } = await reachOwnDatabase(place, logger);
  try {
    return await work(connectionString);
  } catch (error) {
    throw explainUnusable(error, connectionString);
  } finally {
    await close();
  }
};

export type WithDatabase = <Result>(
  flags: DatabaseFlags,
  work: (database: Database) => Promise<Result>,
) => Promise<Result>;

/** Migrates, and uses the environment's encryption keys. */
export const onOwnDatabase =
  (
    { environment, note }: Pick<CommandSurroundings, "environment" | "note">,
    { level = "warn", poolSize = 1, preparedStatements = false } = {},
  ): WithDatabase =>
  async (flags, work) => {
    const logger = commandLogger(level, note);
    const place = await findOwnDatabase(flags, environment);
    return await withReached(place, logger, async (connectionString) => {
      await migrate(connectionString, { schema: place.schema, logger });
      const objects = await openObjectStore(objectStoreIn(place.environment));
      const database = openDatabase({
        connectionString,
        schema: place.schema,
        poolSize,
        applicationName: "threadloom command",
        preparedStatements,
        encryption: ownEncryption(place.environment),
        objects,
        logger,
      });
      try {
        return await work(database);
      } finally {
        await database.close();
        objects?.close();
      }
    });
  };
