import { Command, Option } from "commander";
import { createLogger } from "../../lib/logger.ts";
import { restoreBackup } from "../backup/read.ts";
import {
  explainUnusable,
  findOwnDatabase,
  onDatabase,
  reachOwnDatabase,
  type DatabaseFlags,
} from "../own-database.ts";
import type { CreateCommand } from "./command.ts";

const EXAMPLES = `
Examples:
  $ threadloom restore threadloom-2026-01-31T12-00-00.backup.gz
  $ DATABASE_URL=postgresql://… threadloom restore before-upgrade.gz --force

Stop all servers first. Runs that were not ended go on when one starts, from their last checkpoints, and crons fire again: two
deployments from one backup do everything twice. Encrypted rows need the keys that they were encrypted with.
Exit codes: 0 done, 1 not done, 2 wrong usage.`;

interface Flags extends DatabaseFlags {
  force?: true;
  json?: true;
}

/** Fills a database from a backup. */
export const createRestore: CreateCommand = ({ environment, write, tell }) =>
  onDatabase(new Command("restore"))
    .description("Fills an empty database from a file of 'threadloom backup'.")
    .argument("<file>", "the backup")
    .option("--force", "delete all that the database holds of Threadloom first")
    .addOption(new Option("--json", "answer as JSON"))
    .addHelpText("after", EXAMPLES)
    .action(async (file: string, { force, json, ...flags }: Flags) => {
      const logger = createLogger({ level: "warn", destination: { write: tell } });
      const place = await findOwnDatabase(flags, environment);
      const { connectionString, close } = await reachOwnDatabase(place, logger);
      try {
        const { head, rows } = await restoreBackup({
          connectionString,
          schema: place.schema,
          file,
          force: force === true,
          onTable: (table, count) => tell(`${table}: ${count} rows\n`),
          logger,
        }).catch((error: unknown) => {
          throw explainUnusable(error, connectionString);
        });
        if (json) return write(`${JSON.stringify({ rows, created_at: head.created_at })}\n`);
        write(`${rows} rows are restored, as of ${head.created_at}.\n`);
        if (head.encryption_keys.length > 0)
          tell(`A start needs the keys ${head.encryption_keys.join(", ")} in LANGGRAPH_AES_KEY.\n`);
      } finally {
        await close();
      }
    });
