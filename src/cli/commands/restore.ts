import { Command } from "commander";
import { onBackup, withBackedUp, type BackupFlags } from "../backup/command.ts";
import { restoreBackup } from "../backup/read.ts";
import type { CreateCommand } from "./command.ts";

const EXAMPLES = `
Examples:
  $ threadloom restore threadloom-2026-01-31T12-00-00.backup.gz
  $ DATABASE_URL=postgresql://… threadloom restore before-upgrade.gz --force

Stop all servers first. When a server starts, unfinished runs continue from their last checkpoints, and crons fire: two
deployments from one backup do everything twice. Encrypted rows need their keys.
Exit codes: 0 done, 1 not done, 2 wrong usage.`;

export const createRestore: CreateCommand = (surroundings) =>
  onBackup(new Command("restore"), "first delete all of Threadloom's data in the database")
    .description("Fills an empty database from a file of 'threadloom backup'.")
    .argument("<file>", "the backup")
    .addHelpText("after", EXAMPLES)
    .action(async (file: string, { force, json, ...flags }: BackupFlags) => {
      const { write, note } = surroundings;
      const { head, rows } = await withBackedUp(flags, surroundings, {
        work: (database) => restoreBackup({ ...database, file, force: force === true }),
      });
      if (json) return write(`${JSON.stringify({ rows, created_at: head.created_at })}\n`);
      write(`${rows} rows are restored, as of ${head.created_at}.\n`);
      if (head.encryption_keys.length > 0)
        note(`A start needs the keys ${head.encryption_keys.join(", ")} in LANGGRAPH_AES_KEY.\n`);
    });
