import { spawn } from "node:child_process";
import { Command } from "commander";
import { sqlState, StartError } from "../../platform/domain/errors.ts";
import { commandLogger } from "../command-logger.ts";
import { findOwnDatabase, onDatabase, withReached, type DatabaseFlags } from "../own-database.ts";
import { NotDoneError } from "../run-command.ts";
import type { CreateCommand } from "./command.ts";

const EXAMPLES = `
Examples:
  $ threadloom psql
  $ threadloom psql -- -c 'select status, count(*) from threadloom.runs group by 1'
  $ threadloom psql --print-url

Starts the embedded PostgreSQL if it does not run, and stops it after psql. This package
does not include psql: install PostgreSQL's client. A printed address works while a server, or this command, runs the database.
Exit codes: 0 done, 1 not done, or psql ended with an error, 2 wrong usage.`;

interface Flags extends DatabaseFlags {
  printUrl?: true;
}

const MISSING =
  "There is no psql on this machine: install PostgreSQL's client (Debian: apt install postgresql-client, macOS: brew install " +
  "libpq), or open another client with the address that 'threadloom psql --print-url' prints.";

const runPsql = (argv: readonly string[], environment: NodeJS.ProcessEnv): Promise<number | null> =>
  new Promise((resolve, reject) => {
    const child = spawn("psql", argv, { env: environment, stdio: "inherit" });
    child.once("error", (error) =>
      reject(sqlState(error) === "ENOENT" ? new StartError(MISSING, { cause: error }) : error),
    );
    child.once("close", resolve);
  });

export const createPsql: CreateCommand = ({ environment, write, note, stopping }) =>
  onDatabase(new Command("psql"))
    .description("Opens psql on the database: the embedded one, or that of DATABASE_URL.")
    .argument("[arguments...]", "for psql, behind a --")
    .option("--print-url", "print the address with its password instead")
    .addHelpText("after", EXAMPLES)
    .action(async (argv: string[], { printUrl, ...flags }: Flags) => {
      const logger = commandLogger("warn", note);
      const place = await findOwnDatabase(flags, environment);
      await withReached(place, logger, async (connectionString) => {
        if (printUrl) return write(`${connectionString}\n`);
        // psql handles Ctrl-C itself: it cancels a statement.
        stopping();
        const { username, password, hostname, port, pathname, search } = new URL(connectionString);
        // Every user of a machine can read the arguments of processes.
        const url = `postgresql://${username === "" ? "" : `${username}@`}${hostname}${port === "" ? "" : `:${port}`}${pathname}${search}`;
        const secret = password === "" ? {} : { PGPASSWORD: decodeURIComponent(password) };
        const search_path = { PGOPTIONS: `-c search_path=${place.schema},public` };
        const code = await runPsql([url, ...argv], { ...environment, ...search_path, ...secret });
        if (code !== 0) throw new NotDoneError();
      });
    });
