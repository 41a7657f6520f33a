/** The database of this deployment, for commands. Servers may run or not. */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { Command } from "commander";
import { databaseName } from "./banner.ts";
import { graphConfigFileOf } from "../platform/config/config.ts";
import { DATABASE_OPTIONS, unusedDataWarning } from "../platform/config/database-options.ts";
import { ENCRYPTION_OPTIONS } from "../platform/config/encryption-options.ts";
import type { Option } from "../platform/config/option.ts";
import { OPTIONS } from "../platform/config/options.ts";
import { openDatabase, type Database } from "../platform/database/database.ts";
import { startEmbeddedPostgres } from "../platform/database/embedded/embedded.ts";
import { migrate } from "../platform/database/migrate.ts";
import { isUnusable, unusableReason } from "../platform/database/passing-faults.ts";
import { StartError, UsageError } from "../platform/domain/errors.ts";
import type { Cipher } from "../platform/encryption/cipher.ts";
import { openCipher } from "../platform/encryption/setup.ts";
import type { Logger } from "../platform/lib/logger.ts";
import { readGraphConfig } from "../graphs/project/langgraph-json.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface DatabaseFlags {
  databaseUrl?: string | undefined;
  databaseSchema?: string | undefined;
  data?: string | undefined;
  config?: string | undefined;
}

export const onDatabase = (command: Command): Command =>
  command
    .option("--database-url <url>", "the database's address, not of a pooler in transaction mode")
    .option("--database-schema <name>", "the schema of its tables")
    .option("--data <folder>", "folder of the embedded PostgreSQL, if no database is named")
    .option("--config <path>", "the langgraph.json; its env may name the database");

export interface OwnDatabase {
  database: Database;
  close(): Promise<void>;
}

/** As a server does. The file may be missing, but not invalid. */
const completed = async (flags: DatabaseFlags, environment: Environment): Promise<Environment> => {
  const file = flags.config ?? graphConfigFileOf([], environment);
  const fileExists = await readFile(file).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== "ENOENT",
  );
  if (!fileExists && flags.config === undefined) return environment;
  const project = await readGraphConfig(file);
  return { ...project.environment, ...environment };
};

const checked = <Value>(
  option: Option<Value>,
  flag: string,
  given: string | undefined,
  environment: Environment,
): Value => {
  const name = option.environment.find((variable) => (environment[variable] ?? "") !== "");
  const text = given ?? (name === undefined ? option.default : environment[name]);
  const parsed = option.schema.safeParse(text);
  if (!parsed.success) {
    const Kind = given === undefined ? StartError : UsageError;
    throw new Kind(`${given === undefined ? name : flag} must be ${option.expected}.`);
  }
  return parsed.data;
};

/** Undefined without keys. */
export const cipherOf = (environment: Environment): Cipher | undefined => {
  const { encryptionKeys, encryptionFallbackKeys, encryptedMetadataKeys } = ENCRYPTION_OPTIONS;
  const keys = [encryptionKeys, encryptionFallbackKeys].flatMap((option) =>
    checked(option, "", undefined, environment),
  );
  return openCipher({ keys, metadataKeys: checked(encryptedMetadataKeys, "", undefined, environment) });
};

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
export const databasePlaceOf = (flags: DatabaseFlags, environment: Environment): DatabasePlace => {
  const { databaseUrl, databaseSchema, databaseDirectUrl } = DATABASE_OPTIONS;
  const schema = checked(databaseSchema, "--database-schema", flags.databaseSchema, environment) ?? "";
  // Migrations need a session, which a pooler in transaction mode does not give.
  const url =
    checked(databaseDirectUrl, "--database-url", flags.databaseUrl, environment) ??
    checked(databaseUrl, "--database-url", undefined, environment);
  const dataFolder =
    flags.data ?? (environment[OPTIONS.dataFolder.environment[0] ?? ""] || OPTIONS.dataFolder.default || "");
  const warning = unusedDataWarning(flags.data !== undefined, url);
  return { environment, url, schema, dataFolder: resolve(dataFolder), warning };
};

/** Opens nothing. @throws StartError */
export const findOwnDatabase = async (flags: DatabaseFlags, given: Environment): Promise<DatabasePlace> =>
  databasePlaceOf(flags, await completed(flags, given));

export interface ReachedDatabase {
  connectionString: string;
  /** Stops the embedded PostgreSQL, unless other processes use it. */
  close(): Promise<void>;
}

/** Does not connect to other databases. */
export const reachOwnDatabase = async (
  { url, dataFolder, warning }: DatabasePlace,
  logger: Logger,
): Promise<ReachedDatabase> => {
  if (warning !== undefined) logger.warn(warning);
  return url === undefined
    ? await startEmbeddedPostgres({ dataFolder, logger })
    : { connectionString: url, close: () => Promise.resolve() };
};

/** Turns connection errors into one sentence. */
export const explainUnusable = (error: unknown, connectionString: string): unknown => {
  if (!isUnusable(error)) return error;
  const reason = unusableReason(error);
  return new StartError(`The database ${databaseName(connectionString)} can't be used: ${reason}.`, {
    cause: error,
  });
};

export const migrateOwn = (
  { environment, schema }: DatabasePlace,
  connectionString: string,
  logger: Logger,
): Promise<void> => {
  const { schema: flag, environment: names, default: usual } = DATABASE_OPTIONS.databaseAdvisoryLocks;
  const advisoryLocks = flag.parse(environment[names[0] ?? ""] || usual);
  return migrate(connectionString, { schema, advisoryLocks, logger });
};

/** Migrates, and uses the environment's encryption keys. @throws StartError */
export const openOwnDatabase = async (
  flags: DatabaseFlags,
  given: Environment,
  logger: Logger,
): Promise<OwnDatabase> => {
  const place = await findOwnDatabase(flags, given);
  const reached = await reachOwnDatabase(place, logger);
  const { connectionString } = reached;
  try {
    await migrateOwn(place, connectionString, logger);
    const database = openDatabase({
      connectionString,
      schema: place.schema,
      poolSize: 1,
      applicationName: "threadloom command",
      preparedStatements: false,
      cipher: cipherOf(place.environment),
      logger,
    });
    return {
      database,
      async close() {
        await database.close();
        await reached.close();
      },
    };
  } catch (error) {
    await reached.close();
    throw explainUnusable(error, connectionString);
  }
};
