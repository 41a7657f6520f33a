import { Command } from "commander";
import { databaseName } from "../banner.ts";
import { createCheckpointStorage } from "../../state/checkpoints/storage.ts";
import { assertEncryptionKeys } from "../../platform/database/encryption-keys.ts";
import { openDatabase } from "../../platform/database/database.ts";
import { hasCluster } from "../../platform/database/embedded/place.ts";
import { startEmbeddedPostgres } from "../../platform/database/embedded/embedded.ts";
import { migrate } from "../../platform/database/migrate.ts";
import { isSession } from "../../platform/database/pooling.ts";
import { isUnusable } from "../../platform/database/passing-faults.ts";
import { readGraphConfig } from "../../graphs/project/langgraph-json.ts";
import { importCommandOf, type ImportCommand, type ImportFlags } from "../import/command-line.ts";
import { importThreads, THREADS_AT_A_TIME } from "../import/importer.ts";
import { createProgressLine, type Progress } from "../import/progress.ts";
import { reportText, totalsText } from "../import/report.ts";
import { openSource } from "../import/source.ts";
import { sqlState, StartError } from "../../platform/domain/errors.ts";
import { prettyLines } from "../../platform/lib/pretty-lines.ts";
import { createLogger } from "../../platform/lib/logger.ts";
import { nearestWord } from "../../platform/lib/nearest-word.ts";
import { onDatabase } from "../own-database.ts";
import { NotDoneError } from "../run-command.ts";
import type { CommandSurroundings, CreateCommand } from "./command.ts";

const explain = async <Result>(name: string, work: Promise<Result>): Promise<Result> => {
  try {
    return await work;
  } catch (error) {
    if (!isUnusable(error)) throw error;
    throw new StartError(
      `The database ${name} can't be used: ${(error as Error).message || (sqlState(error) ?? "")}.`,
      {
        cause: error,
      },
    );
  }
};

/** A mistyped graph id would be found only when a thread runs. */
const assertGraph = async (
  graphId: string,
  { graphConfigFile, projectKeys }: Pick<ImportCommand, "graphConfigFile" | "projectKeys">,
): Promise<void> => {
  const { path, entries } = await readGraphConfig(graphConfigFile, projectKeys);
  const ids = entries.map(({ id }) => id);
  if (ids.includes(graphId)) return;
  const nearest = nearestWord(graphId, ids);
  throw new StartError(
    `${path} names no graph '${graphId}'. ${nearest === undefined ? "" : `Did you mean '${nearest}'? `}` +
      `It names ${ids.join(", ")}; name another file with --config.`,
  );
};

const run = async (
  command: ImportCommand,
  { write, terminal, stopping }: CommandSurroundings,
): Promise<boolean> => {
  const { from, schema, dryRun, threadId, graphId } = command;
  const logger = createLogger({
    level: "warn",
    destination: terminal ? prettyLines() : undefined,
  });
  const closers: (() => Promise<void>)[] = [];
  const openHere = async () => {
    let connectionString = command.databaseUrl;
    if (connectionString === undefined) {
      const { dataFolder } = command;
      if (dryRun && !(await hasCluster(dataFolder))) return undefined;
      const postgres = await startEmbeddedPostgres({ dataFolder, logger });
      closers.push(() => postgres.close());
      connectionString = postgres.connectionString;
    }
    if (!(await explain(databaseName(connectionString), isSession(connectionString)))) {
      throw new StartError(
        `The connection to the database ${databaseName(connectionString)} goes through a pooler in transaction mode: ` +
          "use a direct address, with --database-url or DATABASE_DIRECT_URL.",
      );
    }
    if (!dryRun)
      await explain(
        databaseName(connectionString),
        migrate(connectionString, { schema: command.databaseSchema, logger }),
      );
    const database = openDatabase({
      connectionString,
      schema: command.databaseSchema,
      poolSize: 2 * THREADS_AT_A_TIME,
      applicationName: "threadloom import",
      preparedStatements: true,
      logger,
    });
    closers.push(() => database.close());
    await explain(databaseName(connectionString), database.query("select 1"));
    // Without the keys, the import would store values unencrypted beside encrypted ones.
    if (!dryRun) await assertEncryptionKeys(database);
    return { database, checkpoints: createCheckpointStorage({ database, logger }) };
  };
  try {
    if (graphId !== undefined) await assertGraph(graphId, command);
    const source = openSource({
      connectionString: from,
      schema,
      name: databaseName(from),
      poolSize: THREADS_AT_A_TIME,
    });
    closers.push(() => source.close());
    await explain(databaseName(from), source.assertTables());
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

It may be stopped at any time, and run again: what is here already is left as it is, and only what is new is copied.
Exit codes: 0 done, 1 not all was copied, 2 wrong usage.`;

export const createImport: CreateCommand = (surroundings) =>
  onDatabase(new Command("import"))
    .description("Copies threads from a database that @langchain/langgraph-checkpoint-postgres filled.")
    .requiredOption(
      "--from <url>",
      "the database to read (required), e.g. postgresql://user:password@host/database; the import only reads it",
    )
    .option("--schema <name>", "the schema of its tables (default: public)")
    .option(
      "--graph <id>",
      "the graph id of these threads in langgraph.json, which the source does not store. Without it, a thread gets its graph from its " +
        "next run. To correct a wrong graph, run the import again",
    )
    .option("--thread <id>", "only this thread")
    .option("--dry-run", "show the work, and write nothing")
    .addHelpText("after", EXAMPLES)
    .action(async (flags: ImportFlags) => {
      const isComplete = await run(importCommandOf(flags, surroundings.environment), surroundings);
      if (!isComplete) throw new NotDoneError();
    });
