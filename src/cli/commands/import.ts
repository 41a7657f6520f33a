import { Command } from "commander";
import { databaseName } from "../banner.ts";
import { createCheckpointStorage } from "../../state/checkpoints/storage.ts";
import { isPostgresUrl } from "../../platform/config/options.ts";
import { OPTIONS } from "../../platform/config/options.ts";
import { projectKeysIn } from "../../platform/config/project-keys.ts";
import { graphConfigFileOf, type Environment } from "../../platform/config/resolve.ts";
import { assertEncryptionKeys } from "../../platform/database/encryption-keys.ts";
import { readGraphConfig } from "../../graphs/project/langgraph-json.ts";
import { importThreads, THREADS_AT_A_TIME } from "../import/importer.ts";
import { createProgressLine } from "../import/progress.ts";
import { reportText, totalsText } from "../import/report.ts";
import { Source } from "../import/source.ts";
import { StartError, UsageError } from "../../platform/domain/errors.ts";
import { nearestWord } from "../../platform/lib/nearest-word.ts";
import { commandLogger } from "../flags.ts";
import { onDatabase, onOwnDatabase, type DatabaseFlags } from "../own-database.ts";
import { NotDoneError } from "../run-command.ts";
import type { CommandSurroundings, CreateCommand } from "../command.ts";

interface Flags extends DatabaseFlags {
  from: string;
  schema: string;
  graph?: string;
  thread?: string;
  dryRun: boolean;
}

/** Otherwise only a run would find a mistyped graph id. */
const assertGraph = async (graphId: string, flags: Flags, environment: Environment): Promise<void> => {
  const file = graphConfigFileOf(environment, flags.config);
  const { path, entries } = await readGraphConfig(file, projectKeysIn(environment));
  const ids = entries.map(({ id }) => id);
  if (ids.includes(graphId)) return;
  const nearest = nearestWord(graphId, ids);
  throw new StartError(
    `${path} names no graph '${graphId}'. ${nearest === undefined ? "" : `Did you mean '${nearest}'? `}` +
      `It names ${ids.join(", ")}; name another file with --config.`,
  );
};

const run = async (flags: Flags, surroundings: CommandSurroundings): Promise<boolean> => {
  const { from, schema, dryRun, thread: threadId, graph: graphId } = flags;
  const { environment, write, terminal, stopping } = surroundings;
  if (!isPostgresUrl(from)) throw new UsageError(`--from must be ${OPTIONS.databaseUrl.expected}.`);
  if (graphId !== undefined) await assertGraph(graphId, flags, environment);
  const source = new Source({ connectionString: from, schema, poolSize: THREADS_AT_A_TIME });
  try {
    await source.assertTables();
    const totals = await source.totals(threadId);
    if (totals.threads === 0 && threadId !== undefined)
      throw new StartError(`The database ${databaseName(from)} has no thread '${threadId}'.`);
    if (dryRun) {
      write(totalsText(totals));
      return true;
    }
    const options = { poolSize: 2 * THREADS_AT_A_TIME, preparedStatements: true };
    const report = await onOwnDatabase(surroundings, options)(flags, async (database) => {
      // Without the keys, the import would store values unencrypted beside encrypted ones.
      await assertEncryptionKeys(database);
      const logger = commandLogger("warn", surroundings.note);
      return await importThreads({
        source,
        here: { database, checkpoints: createCheckpointStorage({ database, logger }) },
        threadId,
        threadsTotal: totals.threads,
        graphId,
        onProgress: createProgressLine({ write, terminal }),
        signal: stopping(),
      });
    });
    write(reportText(report));
    return report.failed.length === 0 && !report.stopped;
  } finally {
    await source.close();
  }
};

const EXAMPLES = `
Examples:
  $ threadloom import --from postgresql://user:password@host:5432/app --dry-run
  $ threadloom import --from postgresql://user:password@host:5432/app --graph agent

You can stop it at any time and run it again: it copies only new records and leaves existing ones as they are.
Exit codes: 0 done, 1 not all was copied, 2 wrong usage.`;

export const create: CreateCommand = (surroundings) =>
  onDatabase(new Command("import"))
    .description("Copies threads from a database that @langchain/langgraph-checkpoint-postgres filled.")
    .requiredOption(
      "--from <url>",
      "the database to read (required), e.g. postgresql://user:password@host/database; the import only reads it",
    )
    .option("--schema <name>", "the schema of its tables", "public")
    .option(
      "--graph <id>",
      "the graph id of these threads in langgraph.json, which the source does not store. Without it, a thread gets its graph from its " +
        "next run",
    )
    .option("--thread <id>", "only this thread")
    .option("--dry-run", "count what the source holds, and write nothing", false)
    .addHelpText("after", EXAMPLES)
    .action(async (flags: Flags) => {
      if (!(await run(flags, surroundings))) throw new NotDoneError();
    });
