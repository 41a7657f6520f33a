import { randomUUID } from "node:crypto";
import { pino } from "pino";
import { createCheckpointStorage } from "../../src/state/checkpoints/storage.ts";
import { openDatabase, type Database } from "../../src/platform/database/database.ts";
import { migrate } from "../../src/platform/database/migrate.ts";
import { DEFAULT_SCHEMA } from "../../src/platform/database/schema.ts";
import { boundCopy } from "../../src/graphs/runnable-graph.ts";
import { startTcpProxy } from "../helpers/tcp-proxy.ts";
import {
  createBareLibraries,
  OFFICIAL_DATABASE,
  POOL_SIZE,
  type BareLibraries,
  type GraphId,
} from "./bare-library.ts";
import { percentile, run, WIDTH } from "./load.ts";
import { libraryRunner, measure, type Runner } from "./runs.ts";
import { HELLO, scaled, type Bench, type Scenario } from "./scenario.ts";

/**
 * The cost of storing state without HTTP and without a queue: LangGraph.js in this process with this server's saver, fenced as in a run,
 * beside the official Postgres saver on the same PostgreSQL.
 */

const OWN_DATABASE = "own_saver";
const STEPS = 10;
const ROUND_TRIP_MS = 2;
const WARM_UP_RUNS = 100;

const logger = pino({ level: "silent" });

/** Creates a thread with a running run for each turn, because creating, claiming and ending runs is not measured. */
const makeRuns = async (
  database: Database,
  count: number,
): Promise<{ threadId: string; runId: string }[]> => {
  const runs = Array.from({ length: count }, () => ({ threadId: randomUUID(), runId: randomUUID() }));
  const threadIds = runs.map(({ threadId }) => threadId);
  await database.query("insert into threadloom.threads (thread_id) select unnest($1::uuid[])", [threadIds]);
  await database.query(
    `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, attempt)
     select run_id, thread_id, run_id, 'bench', 'running', '{}', 'enqueue', 1
     from unnest($1::uuid[], $2::uuid[]) as new (run_id, thread_id)`,
    [runs.map(({ runId }) => runId), threadIds],
  );
  return runs;
};

/** All savers, and LangGraph without one, at the same distance from the database. */
interface Savers {
  database: Database;
  runners(graph: GraphId): Runner[];
}

const ownRunner = (bench: Bench, database: Database, id: GraphId): Runner => {
  const storage = createCheckpointStorage({ database, logger });
  const graph = bench.libraries.none.graph(id);
  return {
    name: "threadloom",
    cpu: bench.libraries.official.cpu, // all work happens in this process
    async prepare(count) {
      const runs = await makeRuns(database, count);
      return async (index) => {
        const { threadId, runId } = runs[index]!;
        const checkpointer = storage.saverForAttempt({ threadId, runId, attempt: 1 });
        await boundCopy(graph, { checkpointer }).invoke(HELLO, { configurable: { thread_id: threadId } });
        await checkpointer.flush();
      };
    },
  };
};

const withSavers = async (
  bench: Bench,
  connectionString: string,
  libraries: BareLibraries,
  work: (savers: Savers) => Promise<void>,
): Promise<void> => {
  const database = openDatabase({
    connectionString,
    poolSize: POOL_SIZE,
    applicationName: "bench",
    preparedStatements: true,
    logger,
  });
  try {
    await work({
      database,
      runners: (graph) => [
        ownRunner(bench, database, graph),
        ...[libraries.none, libraries.memory(), libraries.official].map((library) =>
          libraryRunner(library, graph),
        ),
      ],
    });
  } finally {
    await database.close();
  }
};

const warmUp = async (runners: Runner[], width: number, count: number): Promise<void> => {
  for (const runner of runners) await run(width, count, await runner.prepare(count));
};

const firstTurns = async (bench: Bench, { runners }: Savers): Promise<void> => {
  const counts = { single: scaled(bench, 100), parallel: scaled(bench, 400) };
  await warmUp(runners("two-step"), WIDTH, WARM_UP_RUNS);
  for (let repeat = 0; repeat < bench.repeats; repeat += 1) {
    for (const runner of runners("two-step")) {
      await measure(bench, { scenario: "checkpoints", title: "first turn, " }, runner, counts, {
        p50: "<= official",
        perSecond: ">= 1.5x official",
      });
    }
  }
};

const tenSteps = async (
  bench: Bench,
  { database, runners }: Savers,
  { roundTripMs, count, wanted }: { roundTripMs: number; count: number; wanted: string },
): Promise<void> => {
  const add = (what: string, name: Runner["name"], value: number, want?: string): void =>
    bench.figures.add(
      "checkpoints",
      {
        label: `ten steps, round trip ${roundTripMs} ms: ${what}`,
        unit: "ms",
        better: "less",
        ...(want && { wanted: want }),
      },
      name,
      value,
    );
  const rounds = scaled(bench, count);
  await warmUp(runners("ten-steps"), 4, count);
  for (let repeat = 0; repeat < bench.repeats; repeat += 1) {
    const asked = await run(1, 50, () => database.query("select 1"));
    add("a statement, p50", "threadloom", percentile(asked.latencies, 0.5));
    const times = new Map<Runner["name"], number>();
    for (const { name, prepare } of runners("ten-steps")) {
      const { latencies } = await run(1, rounds, await prepare(rounds));
      times.set(name, percentile(latencies, 0.5));
    }
    for (const [name, time] of times) {
      const perStep = (time - times.get("none")!) / STEPS;
      add("a run, p50", name, time);
      if (name !== "none") add("checkpoints, per step", name, perStep, wanted);
      bench.progress(
        `checkpoints: ${name}: ten steps at ${roundTripMs} ms: ${time.toFixed(2)} ms a run, ` +
          `${perStep.toFixed(2)} a step for checkpoints`,
      );
    }
  }
};

export const checkpoints: Scenario = {
  name: "checkpoints",
  about: "savers alone, without HTTP: a first turn; ten steps with the database here, and 2 ms away",
  async run(bench) {
    const own = await bench.server.createDatabase(OWN_DATABASE);
    await migrate(own, { schema: DEFAULT_SCHEMA, logger });
    await withSavers(bench, own, bench.libraries, async (savers) => {
      await firstTurns(bench, savers);
      await tenSteps(bench, savers, { roundTripMs: 0, count: 40, wanted: "<= official" });
    });

    const proxy = await startTcpProxy(own);
    const { port } = new URL(proxy.connectionString);
    const official = new URL(await bench.server.connectionString(OFFICIAL_DATABASE));
    official.port = port; // to the same PostgreSQL
    proxy.delay(ROUND_TRIP_MS / 2);
    const libraries = await createBareLibraries(official.href, bench.server.postmasterPid);
    try {
      await withSavers(bench, proxy.connectionString, libraries, (savers) =>
        tenSteps(bench, savers, { roundTripMs: ROUND_TRIP_MS, count: 10, wanted: "<= 1/3 official" }),
      );
    } finally {
      await libraries.close();
      await proxy.close();
    }
  },
};
