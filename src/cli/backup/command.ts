import type { Command } from "commander";
import { createLogger, type Logger } from "../../platform/lib/logger.ts";
import { answeringJson } from "../flags.ts";
import {
  explainUnusable,
  findOwnDatabase,
  onDatabase,
  reachOwnDatabase,
  type DatabaseFlags,
  type DatabasePlace,
  type Environment,
} from "../own-database.ts";

/** What the commands around backups take. */
export interface BackupFlags extends DatabaseFlags {
  force?: true;
  json?: true;
}

/** Gives a command the flags of those around backups. `force`: what that one does. */
export const onBackup = (command: Command, force: string): Command =>
  answeringJson(onDatabase(command).option("--force", force));

/** What a backup is read from, or written into. */
interface BackedUpDatabase {
  connectionString: string;
  schema: string;
  /** Tells how far it is. */
  onTable(table: string, rows: number): void;
  logger: Logger;
}

/**
 * Does something with the database that the flags name; an embedded one that does not run is started, and stopped afterwards.
 * @throws StartError with one sentence if it can't be used, and whatever `check` and `work` throw
 */
export const withBackedUp = async <Result>(
  flags: DatabaseFlags,
  { environment, note }: { environment: Environment; note(text: string): void },
  {
    check,
    work,
  }: {
    /** Before anything is started. */
    check?(place: DatabasePlace): Promise<void>;
    work(database: BackedUpDatabase): Promise<Result>;
  },
): Promise<Result> => {
  const logger = createLogger({ level: "warn", destination: { write: note } });
  const place = await findOwnDatabase(flags, environment);
  await check?.(place);
  const { connectionString, close } = await reachOwnDatabase(place, logger);
  try {
    return await work({
      connectionString,
      schema: place.schema,
      onTable: (table, rows) => note(`${table}: ${rows} rows\n`),
      logger,
    });
  } catch (error) {
    throw explainUnusable(error, connectionString);
  } finally {
    await close();
  }
};
