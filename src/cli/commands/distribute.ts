import { Command, Option } from "commander";
import pg from "pg";
import {
  clusterFaults,
  countShards,
  distributeTables,
  hasTables,
  SHARDS_AT_MOST,
  stepsLeft,
  stepsOf,
} from "../../platform/database/distributed/distribute.ts";
import { partsByNode } from "../../platform/database/distributed/placement.ts";
import { StartError } from "../../platform/domain/errors.ts";
import { commandLogger } from "../command-logger.ts";
import { findOwnDatabase, migrateOwn, onDatabase, withReached, type DatabaseFlags } from "../own-database.ts";
import { assertNoServers } from "../running-servers.ts";
import type { CommandSurroundings, CreateCommand } from "./command.ts";

const DEFAULT_SHARDS = 16;

const EXAMPLES = `
Examples:
  $ threadloom distribute --database-url postgresql://owner:password@coordinator:5432/app --dry-run
  $ threadloom distribute --database-url postgresql://owner:password@coordinator:5432/app --shards 32
  $ threadloom distribute --status

The database is the coordinator of a Citus cluster. Stop all servers first: each step locks a table until its rows are
on their nodes. After a failure, run the command again: it goes on with the step that failed. docs/scaling.md says what
works on a cluster, and what does not.
Exit codes: 0 done, 1 not done, 2 wrong usage.`;

interface Flags extends DatabaseFlags {
  shards?: string;
  dryRun?: true;
  status?: true;
}

/** Long steps must not look dead. */
const REPORT_MS = 10_000;

const shardsOf = (given: string | undefined): number => {
  const shards = Number(given ?? DEFAULT_SHARDS);
  if (!Number.isInteger(shards) || shards < 1 || shards > SHARDS_AT_MOST)
    throw new StartError(`--shards must be a whole number from 1 to ${SHARDS_AT_MOST}.`);
  return shards;
};

const showStatus = async (
  client: pg.Client,
  schema: string,
  { write }: CommandSurroundings,
): Promise<void> => {
  const parts = await partsByNode(client, schema);
  if (parts.size === 0) write("The tables are not distributed.\n");
  for (const [node, count] of parts)
    write(`${node}  ${count} ${count === 1 ? "part" : "parts"} of all threads\n`);
};

const distribute = async (flags: Flags, surroundings: CommandSurroundings): Promise<void> => {
  const { environment, note, write } = surroundings;
  const shards = shardsOf(flags.shards);
  const logger = commandLogger("warn", note);
  const place = await findOwnDatabase(flags, environment);
  if (place.url === undefined)
    throw new StartError(
      "The embedded PostgreSQL can't be distributed: name the coordinator of a Citus cluster with --database-url.",
    );
  await withReached(place, logger, async (connectionString) => {
    const client = new pg.Client({ connectionString, application_name: "threadloom command" });
    client.on("error", () => undefined);
    try {
      await client.connect();
      if (flags.status) return await showStatus(client, place.schema, surroundings);
      const faults = await clusterFaults(client);
      if (faults.length > 0) throw new StartError(faults.join("\n"));
      if (!flags.dryRun) await assertNoServers(client, place.schema);
      const present = await countShards(client, place.schema);
      if (flags.shards !== undefined && present > 0 && present !== shards)
        throw new StartError(
          `The threads are divided into ${present} parts already. --shards can't change that; leave it out.`,
        );
      if (!flags.dryRun) await migrateOwn(place, connectionString, logger);
      else if (!(await hasTables(client, place.schema)))
        throw new StartError("This database has no tables yet. 'threadloom migrate' creates them.");
      const { rows } = await client.query<{ name: string }>("select current_database() as name");
      const steps = await stepsLeft(client, stepsOf(place.schema, rows[0]!.name, shards));
      if (flags.dryRun) {
        for (const { title } of steps) write(`${title}\n`);
        note(steps.length === 0 ? "Nothing is left to do.\n" : `${steps.length} steps are left.\n`);
        return;
      }
      // An interrupted command must not leave a statement that waits for a lock.
      await client.query("set client_connection_check_interval = '2s'");
      let step = "";
      let begunAt = performance.now();
      const reports = setInterval(() => {
        const seconds = Math.round((performance.now() - begunAt) / 1_000);
        note(`  ${seconds} s. If it waits for a lock, pg_stat_activity shows the transaction that has it.\n`);
      }, REPORT_MS);
      try {
        await distributeTables(client, steps, ({ title }) => {
          step = title;
          begunAt = performance.now();
          note(`${title} …\n`);
        });
      } catch (error) {
        const reason = (error instanceof Error ? error.message : String(error)).replace(/\.+$/, "");
        throw new StartError(`The step '${step}' failed: ${reason}. Mend it, and run the command again.`, {
          cause: error,
        });
      } finally {
        clearInterval(reports);
      }
      await showStatus(client, place.schema, surroundings);
    } finally {
      await client.end().catch(() => undefined);
    }
  });
};

export const createDistribute: CreateCommand = (surroundings) =>
  onDatabase(new Command("distribute"))
    .description("Distribute the tables over the nodes of a Citus cluster, by thread.")
    .addOption(
      new Option(
        "--shards <number>",
        `parts of all threads, which can't be changed later; more parts let more nodes take some of them (default: ${DEFAULT_SHARDS})`,
      ),
    )
    .addOption(
      new Option("--dry-run", "list the steps that are left, and change nothing").conflicts("status"),
    )
    .option("--status", "show which node has how many parts")
    .addHelpText("after", EXAMPLES)
    .action((flags: Flags) => distribute(flags, surroundings));
