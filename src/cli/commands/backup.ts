import { Command, Option } from "commander";
import { stat } from "node:fs/promises";
import { hasCluster } from "../../database/embedded/place.ts";
import { StartError } from "../../domain/errors.ts";
import { createLogger } from "../../lib/logger.ts";
import { writeBackup } from "../backup/write.ts";
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
  $ threadloom backup
  $ threadloom backup --output /var/backups/threadloom.gz
  $ DATABASE_URL=postgresql://… threadloom backup --output before-upgrade.gz

The file holds all that servers store, as it is at one moment; they may go on meanwhile. Encrypted rows stay encrypted, and
the keys are not in it: keep LANGGRAPH_AES_KEY elsewhere. What is not encrypted can be read by whoever has the file, as can
the hashes of API keys. 'threadloom restore' reads it.
Exit codes: 0 done, 1 not done, 2 wrong usage.`;

interface Flags extends DatabaseFlags {
  output?: string;
  force?: true;
  json?: true;
}

const usualName = (): string =>
  `threadloom-${new Date().toISOString().slice(0, 19).replaceAll(":", "-")}.backup.gz`;

/** Writes the database into one file, beside servers that run. */
export const createBackup: CreateCommand = ({ environment, write, tell }) =>
  onDatabase(new Command("backup"))
    .description("Writes the database into a file: the embedded one, or that of DATABASE_URL.")
    .option("--output <file>", "where to (default: threadloom-<time>.backup.gz in this folder)")
    .option("--force", "write over a file that is there")
    .addOption(new Option("--json", "answer as JSON"))
    .addHelpText("after", EXAMPLES)
    .action(async ({ output: file = usualName(), force, json, ...flags }: Flags) => {
      const logger = createLogger({ level: "warn", destination: { write: tell } });
      if (!force && (await stat(file).catch(() => undefined)) !== undefined)
        throw new StartError(`${file} is there already; --force writes over it.`);
      const place = await findOwnDatabase(flags, environment);
      if (place.url === undefined && !(await hasCluster(place.dataFolder)))
        throw new StartError(`There is no embedded database in ${place.dataFolder}.`);
      const { connectionString, close } = await reachOwnDatabase(place, logger);
      try {
        const { head, rows } = await writeBackup({
          connectionString,
          schema: place.schema,
          file,
          onTable: (table, count) => tell(`${table}: ${count} rows\n`),
        }).catch((error: unknown) => {
          throw explainUnusable(error, connectionString);
        });
        const { size: bytes } = await stat(file);
        if (json)
          return write(`${JSON.stringify({ file, rows, bytes, encryption_keys: head.encryption_keys })}\n`);
        write(`${file}: ${rows} rows, ${bytes} bytes.\n`);
        if (head.encryption_keys.length > 0)
          tell(
            `Rows are encrypted with the keys ${head.encryption_keys.join(", ")}, which are not in the file.\n`,
          );
      } finally {
        await close();
      }
    });
