/** The database that this deployment's servers use, for commands: whether one runs meanwhile or not. */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { databaseName } from "./banner.ts";
import { graphConfigFileOf } from "../config/config.ts";
import { DATABASE_OPTIONS } from "../config/database-options.ts";
import { OPTIONS } from "../config/options.ts";
import { openDatabase, type Database } from "../database/database.ts";
import { startEmbeddedPostgres } from "../database/embedded/embedded.ts";
import { migrate } from "../database/migrate.ts";
import { isUnusable } from "../database/passing-faults.ts";
import { sqlState, StartError } from "../domain/errors.ts";
import type { Logger } from "../lib/logger.ts";
import { readGraphConfig } from "../project/langgraph-json.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Where it is, as flags say; what is left out is taken from the environment, as by a server. */
export interface DatabaseFlags {
  databaseUrl?: string | undefined;
  databaseSchema?: string | undefined;
  /** Folder of the embedded PostgreSQL. */
  data?: string | undefined;
  /** Path of langgraph.json, whose `env` may name the database. */
  config?: string | undefined;
}

export interface OwnDatabase {
  database: Database;
  close(): Promise<void>;
}

/** With what `env` of langgraph.json adds, as for a server. A command needs no langgraph.json; one that is there has to be right. */
const completed = async (flags: DatabaseFlags, environment: Environment): Promise<Environment> => {
  const file = flags.config ?? graphConfigFileOf([], environment);
  const isThere = await readFile(file).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== "ENOENT",
  );
  if (!isThere && flags.config === undefined) return environment;
  const project = await readGraphConfig(file);
  return { ...project.environment, ...environment };
};

const checked = (
  option: (typeof OPTIONS)["databaseUrl" | "databaseSchema"],
  flag: string,
  given: string | undefined,
  environment: Environment,
): string | undefined => {
  const name = option.environment.find((variable) => (environment[variable] ?? "") !== "");
  const text = given ?? (name === undefined ? option.default : environment[name]);
  const parsed = option.schema.safeParse(text);
  if (!parsed.success)
    throw new StartError(`${given === undefined ? name : flag} must be ${option.expected}.`);
  return parsed.data;
};

/**
 * Opens it, with all migrations. The embedded PostgreSQL is taken if it runs, else started and stopped afterwards. Throws
 * StartError if it can't be used.
 */
export const openOwnDatabase = async (
  flags: DatabaseFlags,
  given: Environment,
  logger: Logger,
): Promise<OwnDatabase> => {
  const environment = await completed(flags, given);
  const { databaseUrl, databaseSchema, databaseDirectUrl } = DATABASE_OPTIONS;
  const schema = checked(databaseSchema, "--database-schema", flags.databaseSchema, environment) ?? "";
  // Past a pooler in transaction mode, if there is a way: migrations need a session.
  const url =
    checked(databaseDirectUrl, "--database-url", flags.databaseUrl, environment) ??
    checked(databaseUrl, "--database-url", undefined, environment);
  const dataFolder =
    flags.data ?? (environment[OPTIONS.dataFolder.environment[0] ?? ""] || OPTIONS.dataFolder.default || "");
  const postgres =
    url === undefined ? await startEmbeddedPostgres({ dataFolder: resolve(dataFolder), logger }) : undefined;
  const connectionString = url ?? postgres?.connectionString ?? "";
  try {
    const { schema: flag, environment: names, default: usual } = DATABASE_OPTIONS.databaseAdvisoryLocks;
    const advisoryLocks = flag.parse(environment[names[0] ?? ""] || usual);
    await migrate(connectionString, { schema, advisoryLocks, logger });
    const database = openDatabase({
      connectionString,
      schema,
      poolSize: 1,
      applicationName: "threadloom command",
      preparedStatements: false,
      logger,
    });
    return {
      database,
      async close() {
        await database.close();
        await postgres?.close();
      },
    };
  } catch (error) {
    await postgres?.close();
    if (!isUnusable(error)) throw error;
    const reason = (error as Error).message || (sqlState(error) ?? "");
    throw new StartError(`The database ${databaseName(connectionString)} can't be used: ${reason}.`, {
      cause: error,
    });
  }
};
