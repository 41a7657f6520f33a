import { Command } from "commander";
import { stat } from "node:fs/promises";
import { hasCluster } from "../../platform/database/embedded/place.ts";
import { StartError } from "../../platform/domain/errors.ts";
import { onBackup, withBackedUp, type BackupFlags } from "../backup/command.ts";
import { writeBackup } from "../backup/write.ts";
import type { CreateCommand } from "./command.ts";

const EXAMPLES = `
Examples:
  $ threadloom backup
  $ threadloom backup --output /var/backups/threadloom.gz
  $ DATABASE_URL=postgresql://… threadloom backup --output before-upgrade.gz

The file holds a snapshot of all data. Servers may run meanwhile, except on a Citus cluster. Encrypted rows stay encrypted, and the file has no keys: keep
LANGGRAPH_AES_KEY elsewhere. Everything else in the file is readable, also the hashes of API keys. 'threadloom restore' reads it.
Exit codes: 0 done, 1 not done, 2 wrong usage.`;

interface Flags extends BackupFlags {
  output?: string;
}

const usualName = (): string =>
  `threadloom-${new Date().toISOString().slice(0, 19).replaceAll(":", "-")}.backup.gz`;

export const createBackup: CreateCommand = (surroundings) =>
  onBackup(new Command("backup"), "overwrite an existing file")
    .description("Writes the database into a file: the embedded one, or that of DATABASE_URL.")
    .option("--output <file>", "the file to write (default: threadloom-<time>.backup.gz in this folder)")
    .addHelpText("after", EXAMPLES)
    .action(async ({ output: file = usualName(), force, json, ...flags }: Flags) => {
      const { write, note } = surroundings;
      if (!force && (await stat(file).catch(() => undefined)) !== undefined)
        throw new StartError(`${file} exists already. Use --force to overwrite it.`);
      const { head, rows, isDistributed } = await withBackedUp(flags, surroundings, {
        async check({ url, dataFolder }) {
          if (url === undefined && !(await hasCluster(dataFolder)))
            throw new StartError(`There is no embedded database in ${dataFolder}.`);
        },
        work: (database) => writeBackup({ ...database, file }),
      });
      const { size: bytes } = await stat(file);
      if (isDistributed)
        note("The nodes were read one by one: this is a snapshot only if all servers were stopped.\n");
      if (json)
        return write(`${JSON.stringify({ file, rows, bytes, encryption_keys: head.encryption_keys })}\n`);
      write(`${file}: ${rows} rows, ${bytes} bytes.\n`);
      if (head.encryption_keys.length > 0)
        note(
          `Rows are encrypted with the keys ${head.encryption_keys.join(", ")}, which are not in the file.\n`,
        );
    });
