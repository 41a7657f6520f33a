/**
 * What storing state costs by itself: the saver of this server, fenced as in a run, beside the official Postgres
 * saver, the in-memory one and none, in one process on the same database, with `fsync` on. No HTTP, no queue.
 *
 *   npx tsx test/bench/checkpoints.ts [turns] [round trip in ms]
 */

import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { MemorySaver, type BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { randomUUID } from "node:crypto";
import { connect, createServer, type Socket } from "node:net";
import pg from "pg";
import { pino } from "pino";
import { createCheckpointStorage } from "../../src/checkpoints/storage.ts";
import { openDatabase } from "../../src/database/database.ts";
import { startEmbeddedPostgres } from "../../src/database/embedded.ts";
import { migrate } from "../../src/database/migrate.ts";
import { boundCopy, type RunnableGraph } from "../../src/graphs/runnable-graph.ts";
import { temporaryFolder } from "../helpers/temporary-folder.ts";

const TURNS = Number(process.argv[2] ?? 200);
const TEXT = "The quick brown fox jumps over the lazy dog and runs on through the fields. ".repeat(2);
const logger = pino({ level: "silent" });

const chain = (steps: number): RunnableGraph => {
  const builder = new StateGraph(MessagesAnnotation) as unknown as {
    addNode(name: string, node: () => unknown): void;
    addEdge(from: string, to: string): void;
    compile(): RunnableGraph;
  };
  for (let step = 0; step < steps; step++) {
    const answer = () => ({ messages: step === steps - 1 ? [new AIMessage(TEXT)] : [] });
    builder.addNode(`step${step}`, answer);
    builder.addEdge(step === 0 ? "__start__" : `step${step - 1}`, `step${step}`);
  }
  builder.addEdge(`step${steps - 1}`, "__end__");
  return builder.compile();
};

const folder = await temporaryFolder();
const postgres = await startEmbeddedPostgres({ dataFolder: folder.dataFolder, logger });
await migrate(postgres.connectionString, logger);
/** Delays every packet, in both directions: a database that is not on the same machine. */
const delayed = async (connectionString: string, roundTripMs: number): Promise<string> => {
  const target = new URL(connectionString);
  const port = Number(target.port);
  const forward = (from: Socket, to: Socket): void => {
    from.on("data", (chunk) => void setTimeout(() => void to.write(chunk), roundTripMs / 2));
    from.on("close", () => to.destroy());
    from.on("error", () => to.destroy());
  };
  const proxy = createServer((client) => {
    const server = connect(port, target.hostname).setNoDelay();
    forward(client.setNoDelay(), server);
    forward(server, client);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  proxy.unref();
  const address = proxy.address();
  target.port = String(typeof address === "object" ? address?.port : "");
  return target.href;
};
const ROUND_TRIP_MS = Number(process.argv[3] ?? 0);
const reached =
  ROUND_TRIP_MS > 0 ? await delayed(postgres.connectionString, ROUND_TRIP_MS) : postgres.connectionString;
const pool = new pg.Pool({ connectionString: reached, max: 16 });
const database = openDatabase({
  connectionString: reached,
  poolSize: 16,
  applicationName: "bench",
  preparedStatements: true,
  logger,
});
pool.on("error", () => undefined); // the database may be gone first
await pool.query("create schema official");
const official = new PostgresSaver(pool, undefined, { schema: "official" });
await official.setup();
const storage = createCheckpointStorage({ database, logger });

type Run = (graph: RunnableGraph, threadId: string, input: unknown) => Promise<void>;

const withSaver =
  (saver: BaseCheckpointSaver | undefined): Run =>
  async (graph, threadId, input) => {
    const stream = await boundCopy(graph, saver === undefined ? {} : { checkpointer: saver }).stream(input, {
      configurable: { thread_id: threadId },
      streamMode: "updates",
    });
    for await (const chunk of stream) void chunk;
  };

const runIds = new Map<string, string>();
/** A running run per thread stands for all of its runs: claiming and finishing are not what is measured. */
const makeRun = async (threadId: string): Promise<void> => {
  const runId = randomUUID();
  runIds.set(threadId, runId);
  await database.query("insert into threads (thread_id) values ($1)", [threadId]);
  await database.query(
    `insert into runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, attempt)
     values ($1, $2, $1, 'bench', 'running', '{}', 'enqueue', 1)`,
    [runId, threadId],
  );
};

const threadloom: Run = async (graph, threadId, input) => {
  const saver = storage.saverForAttempt({ threadId, runId: runIds.get(threadId) ?? "", attempt: 1 });
  await withSaver(saver)(graph, threadId, input);
  await saver.flush();
};

const contenders: Array<[string, () => Run]> = [
  ["none", () => withSaver(undefined)],
  ["memory", () => withSaver(new MemorySaver())],
  ["official", () => withSaver(official)],
  ["threadloom", () => threadloom],
];

const hello = () => ({ messages: [new HumanMessage(TEXT)] });
/** CPU of this process, in ms. */
const cpu = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};
const timed = async (work: () => Promise<void>): Promise<number> => {
  const start = performance.now();
  await work();
  return performance.now() - start;
};

const runsPerSecond = async (
  run: Run,
  graph: RunnableGraph,
  count: number,
  width: number,
): Promise<number> => {
  const threads = Array.from({ length: count }, () => randomUUID());
  if (run === threadloom) await Promise.all(threads.map(makeRun));
  let next = 0;
  const lane = async () => {
    for (;;) {
      const id = threads[next++];
      if (id === undefined) return;
      await run(graph, id, hello());
    }
  };
  return (
    (count * 1000) / (await timed(async () => void (await Promise.all(Array.from({ length: width }, lane)))))
  );
};

const bytesOf = async (schema: string, tables: string[]): Promise<number> => {
  const { rows } = await pool.query<{ bytes: string }>(
    `select sum(pg_total_relation_size(c.oid)) as bytes from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = $1 and c.relname = any($2)`,
    [schema, tables],
  );
  return Number(rows[0]?.bytes);
};
const sizes = async () => ({
  official: await bytesOf("official", ["checkpoints", "checkpoint_writes", "checkpoint_blobs"]),
  threadloom: await bytesOf("public", [
    "checkpoints",
    "checkpoint_writes",
    "checkpoint_elements",
    "checkpoint_contents",
  ]),
});

const two = chain(2);
const ten = chain(10);
for (const [name, make] of contenders) {
  const run = make();
  await runsPerSecond(run, two, 50, 4);
  const before = cpu();
  const one = await runsPerSecond(run, two, 200, 1);
  const cpuPerRun = (cpu() - before) / 200;
  const sixteen = await runsPerSecond(run, two, 400, 16);
  const tenSteps = await runsPerSecond(run, ten, 60, 1);
  console.log(
    `${name.padEnd(11)} two steps: ${one.toFixed(0)} runs/s at 1, ${sixteen.toFixed(0)} at 16; ten steps: ${(1000 / tenSteps).toFixed(2)} ms; CPU ${cpuPerRun.toFixed(2)} ms/run at 1`,
  );
}

for (const [name, make] of contenders) {
  if (name === "official" && TURNS > 400) continue;
  const run = make();
  const threadId = randomUUID();
  if (name === "threadloom") await makeRun(threadId);
  const before = await sizes();
  const times: number[] = [];
  const cpus: number[] = [];
  for (let turn = 0; turn < TURNS; turn++) {
    const start = cpu();
    times.push(await timed(() => run(two, threadId, hello())));
    cpus.push(cpu() - start);
  }
  const after = await sizes();
  const mean = (of: number[], from: number, to: number) =>
    of.slice(from, to).reduce((sum, ms) => sum + ms, 0) / (to - from);
  const median = (of: number[], from: number, to: number) =>
    of.slice(from, to).sort((one, other) => one - other)[Math.floor((to - from) / 2)] ?? Number.NaN;
  const bytes = name === "official" || name === "threadloom" ? after[name] - before[name] : 0;
  console.log(
    `${name.padEnd(11)} ${TURNS} turns, ms per turn at 11-60: ${median(times, 10, 60).toFixed(2)} (CPU ${mean(cpus, 10, 60).toFixed(2)}), in the last 50: ${median(times, TURNS - 50, TURNS).toFixed(2)} (CPU ${mean(cpus, TURNS - 50, TURNS).toFixed(2)}); ${(bytes / 1024).toFixed(0)} KiB`,
  );
  if (name === "threadloom") {
    const cold = createCheckpointStorage({ database, logger });
    console.log(
      `  head, cold: ${(await timed(async () => void (await cold.readHead(threadId)))).toFixed(1)} ms`,
    );
    console.log(
      `  head, warm: ${(await timed(async () => void (await cold.readHead(threadId)))).toFixed(1)} ms`,
    );
    const history = () => cold.readHistory(threadId, "", { limit: 10 });
    console.log(`  history of 10: ${(await timed(async () => void (await history()))).toFixed(1)} ms`);
    console.log(`  storage: ${JSON.stringify(await cold.storage(threadId))}`);
  }
}

for (const { table, heap, indexes, rows } of (
  await pool.query<{ table: string; heap: string; indexes: string; rows: string }>(
    `select c.relname as table, pg_table_size(c.oid) / 1024 as heap, pg_indexes_size(c.oid) / 1024 as indexes,
       (xpath('/row/n/text()', query_to_xml(format('select count(*) as n from %s', c.oid::regclass), false, true, '')))[1]::text as rows
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relname like 'checkpoint%' and c.relkind = 'r' and n.nspname in ('public', 'official')`,
  )
).rows) {
  console.log(`  ${table.padEnd(22)} ${rows} rows, ${heap} KiB heap, ${indexes} KiB indexes`);
}
for (const table of ["checkpoints", "checkpoint_writes"]) {
  const { rows } = await pool.query(
    `select * from ${table} where thread_id = $1 order by checkpoint_id desc limit 5`,
    [[...runIds.keys()].at(-1)],
  );
  if (process.argv[4]) console.log(rows);
}

await database.close();
await pool.end();
await postgres.close();
await folder.remove();
