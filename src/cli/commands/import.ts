import { Command } from "commander";
import { databaseName } from "../banner.ts";
import { createCheckpointStorage } from "../../state/checkpoints/storage.ts";
import { isPostgresUrl } from "../../platform/config/options.ts";
import { OPTIONS } from "../../platform/config/options.ts";
import { projectKeysIn } from "../../platform/config/project-keys.ts";
import { graphConfigFileOf, type Environment } from "../../platform/config/resolve.ts";
import { assertEncryptionKeys } from "../../platform/database/encryption-keys.ts";
import { openDatabase } from "../../platform/database/database.ts";
import { hasCluster } from "../../platform/database/embedded/place.ts";
import { isSession } from "../../platform/database/pooling.ts";
import { readGraphConfig } from "../../graphs/project/langgraph-json.ts";
import { importThreads, THREADS_AT_A_TIME } from "../import/importer.ts";
import { createProgressLine, type Progress } from "../import/progress.ts";
import { reportText, totalsText } from "../import/report.ts";
import { openSource } from "../import/source.ts";
import { StartError, UsageError } from "../../platform/domain/errors.ts";
import { prettyLines } from "../../platform/lib/pretty-lines.ts";
import { createLogger } from "../../platform/lib/logger.ts";
import { nearestWord } from "../../platform/lib/nearest-word.ts";
import {
  explainUnusable,
  findOwnDatabase,
  migrateOwn,
  onDatabase,
  reachOwnDatabase,
  type DatabaseFlags,
} from "../own-database.ts";
import { NotDoneError } from "../run-command.ts";
import type { CommandSurroundings, CreateCommand } from "./command.ts";

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

const explained = <Result>(connectionString: string, work: Promise<Result>): Promise<Result> =>
  work.catch((error) => {
    throw explainUnusable(error, connectionString);
  });

const run = async (
  flags: Flags,
  { environment, write, terminal, stopping }: CommandSurroundings,
): Promise<boolean> => {
  const { from, schema, dryRun, thread: threadId, graph: graphId } = flags;
  if (!isPostgresUrl(from)) throw new UsageError(`--from must be ${OPTIONS.databaseUrl.expected}.`);
  const logger = createLogger({
    level: "warn",
    destination: terminal ? prettyLines() : undefined,
  });
  const closers: (() => Promise<void>)[] = [];
  const openHere = async () => {
    const place = await findOwnDatabase(flags, environment);
    if (place.url === undefined && dryRun && !(await hasCluster(place.dataFolder))) return undefined;
    const { connectionString, close } = await reachOwnDatabase(place, logger);
    closers.push(close);
    if (!(await explained(connectionString, isSession(connectionString)))) {
      throw new StartError(
        `The connection to the database ${databaseName(connectionString)} goes through a pooler in transaction mode: ` +
          "use a direct address, with --database-url or DATABASE_DIRECT_URL.",
      );
    }
    if (!dryRun) await explained(connectionString, migrateOwn(place, connectionString, logger));
    const database = openDatabase({
      connectionString,
      schema: place.schema,
      poolSize: 2 * THREADS_AT_A_TIME,
      applicationName: "threadloom import",
      preparedStatements: true,
      logger,
    });
    closers.push(() => database.close());
    await explained(connectionString, database.query("select 1"));
    // Without the keys, the import would store values unencrypted beside encrypted ones.
    if (!dryRun) await assertEncryptionKeys(database);
    return { database, checkpoints: createCheckpointStorage({ database, logger }) };
  };
  try {
    if (graphId !== undefined) await assertGraph(graphId, flags, environment);
    const source = openSource({
      connectionString: from,
      schema,
      name: databaseName(from),
      poolSize: THREADS_AT_A_TIME,
    });
    closers.push(() => source.close());
    await explained(from, source.assertTables());
    if (threadId !== undefined && !(await source.hasThread(threadId))) {
      throw new StartError(`The database ${databaseName(from)} has no thread '${threadId}'.`);
    }
    const here = await openHere();
    if (dryRun && threadId === undefined) write(totalsText(await source.totals()));

    const line = createProgressLine({ write, terminal });
    let last: Progress | undefined;
    const report = await importThreads({
      source,
      here,
      threadId,
      graphId,
      dryRun,
      onProgress(progress) {
        last = progress;
        line.show(progress);
      },
      signal: stopping(),
    });
    if (last !== undefined && !dryRun) line.end(last);
    write(reportText(report, { dryRun }));
    return report.failed.length === 0 && !report.stopped;
  } finally {
    for (const close of closers.reverse()) await close();
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
        "next run. To correct a wrong graph, run the import again",
    )
    .option("--thread <id>", "only this thread")
    .option("--dry-run", "show the work, and write nothing", false)
    .addHelpText("after", EXAMPLES)
    .action(async (flags: Flags) => {
      if (!(await run(flags, surroundings))) throw new NotDoneError();
    });
