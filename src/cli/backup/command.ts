import type { Command } from "commander";
import type { Environment } from "../../platform/config/resolve.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { commandLogger } from "../command-logger.ts";
import { answeringJson } from "../flags.ts";
import {
  findOwnDatabase,
  onDatabase,
  withReached,
  type DatabaseFlags,
  type DatabasePlace,
} from "../own-database.ts";

export interface BackupFlags extends DatabaseFlags {
  force?: true;
}

export const onBackup = (command: Command, force: string): Command =>
  answeringJson(onDatabase(command).option("--force", force));

interface BackedUpDatabase {
  connectionString: string;
  schema: string;
  onTable(table: string, rows: number): void;
  logger: Logger;
}

/** @throws StartError if the database can't be used */
export const withBackedUp = async <Result>(
  flags: DatabaseFlags,
  { environment, note }: { environment: Environment; note(text: string): void },
  {
    check,
    work,
  }: {
    check?(place: DatabasePlace): Promise<void>;
    work(database: BackedUpDatabase): Promise<Result>;
  },
): Promise<Result> => {
  const logger = commandLogger("warn", note);
  const place = await findOwnDatabase(flags, environment);
  await check?.(place);
  return await withReached(place, logger, (connectionString) =>
    work({
      connectionString,
      schema: place.schema,
      onTable: (table, rows) => note(`${table}: ${rows} rows\n`),
      logger,
    }),
  );
};
