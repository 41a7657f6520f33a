import { Command, Option } from "commander";
import pg from "pg";
import { readMigrationStatus, type MigrationStatus } from "../../platform/database/migrate.ts";
import { hasCluster } from "../../platform/database/embedded/place.ts";
import { StartError } from "../../platform/domain/errors.ts";
import { commandLogger, jsonLine } from "../flags.ts";
import {
  findOwnDatabase,
  onDatabase,
  onOwnDatabase,
  placeText,
  withReached,
  type DatabaseFlags,
  type DatabasePlace,
} from "../own-database.ts";
import { NotDoneError } from "../run-command.ts";
import type { CommandSurroundings, CreateCommand } from "../command.ts";

const EXAMPLES = `
Examples:
  $ threadloom migrate --database-url postgresql://owner:password@host:5432/app
  $ threadloom migrate --status
  $ threadloom migrate --check && echo "nothing to do"

Servers do the same at their start, if their role has the rights. --status and --check change nothing.
Exit codes: 0 done, 1 not done, or pending with --check, 2 wrong usage.`;

interface Flags extends DatabaseFlags {
  status?: true;
  check?: true;
}

const statusOf = async (place: DatabasePlace, { note }: CommandSurroundings): Promise<MigrationStatus[]> => {
  const logger = commandLogger("warn", note);
  if (place.url === undefined && !(await hasCluster(place.dataFolder)))
    throw new StartError(
      `There is no embedded database in ${place.dataFolder} yet. The first start creates it.`,
    );
  return await withReached(place, logger, async (connectionString) => {
    const client = new pg.Client({ connectionString, application_name: "threadloom command" });
    client.on("error", () => undefined);
    try {
      await client.connect();
      return await readMigrationStatus(client, place.schema);
    } finally {
      await client.end().catch(() => undefined);
    }
  });
};

const show = async (flags: Flags, surroundings: CommandSurroundings): Promise<void> => {
  const { environment, write, note } = surroundings;
  const place = await findOwnDatabase(flags, environment);
  const states = await statusOf(place, surroundings);
  if (flags.json) write(jsonLine({ migrations: states }));
  else for (const { name, state } of states) write(`${state.padEnd(9)}${name}\n`);
  const others = states.filter(({ state }) => state !== "applied").length;
  note(
    others === 0
      ? `The tables of ${placeText(place)} are up to date.\n`
      : `${others} of ${states.length} are not applied as they are here.\n`,
  );
  if (flags.check && others > 0) throw new NotDoneError();
};

export const create: CreateCommand = (surroundings) =>
  onDatabase(new Command("migrate"))
    .description(
      "Bring the tables up to date: for deployments whose servers may not change them (docs/database-role.md).",
    )
    .option("--status", "list the migrations that are applied and pending, and change nothing")
    .option("--check", "the same, and exit with 1 unless all are applied")
    .addOption(new Option("--json", "answer as JSON, with --status or --check"))
    .addHelpText("after", EXAMPLES)
    .action(async (flags: Flags) => {
      if (flags.status || flags.check) return await show(flags, surroundings);
      await onOwnDatabase(surroundings, { level: "info" })(flags, async () => undefined);
      const place = await findOwnDatabase(flags, surroundings.environment);
      surroundings.write(`The tables of ${placeText(place)} are up to date.\n`);
    });
