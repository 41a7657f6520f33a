/** Process entry of `npm run migrate`: brings the tables up to date, as the role that owns them, before servers start. */
import { Command } from "commander";
import { createLogger } from "../lib/logger.ts";
import { openOwnDatabase, type DatabaseFlags } from "./own-database.ts";
import { runCommand } from "./run-command.ts";

const write = (text: string): void => void process.stdout.write(text);
const tell = (text: string): void => void process.stderr.write(text);

const logger = createLogger({ level: "info", destination: { write: tell } });
const command = new Command("migrate")
  .description(
    "Bring the tables up to date: for deployments whose servers may not change them (docs/database-role.md).",
  )
  .option("--database-url <url>", "address of the database, as the role that owns the schema")
  .option("--database-schema <name>", "schema of the tables")
  .option("--data <folder>", "folder of the embedded PostgreSQL")
  .option("--config <path>", "path of langgraph.json")
  .action(async (flags: DatabaseFlags) => {
    const own = await openOwnDatabase(flags, process.env, logger);
    await own.close();
    write("The tables are up to date.\n");
  });
process.exitCode = await runCommand(command, { argv: process.argv.slice(2), write, tell });
