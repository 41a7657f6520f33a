import { join } from "node:path";
import { checkOut } from "./checkout.ts";
import { ROW_RECORDS } from "./counts/database-writes.ts";
import { median, run, WIDTH } from "./load.ts";
import type { ServerNode } from "./node-version.ts";
import { compareProfiles, readTimes } from "./profile.ts";
import { formatNumber, tableOf } from "./report.ts";
import { createThreads, HELLO } from "./scenario.ts";
import { createServerUnderTest, ROOT, type ServerOptions, type ServerUnderTest } from "./server-process.ts";
import { readEvents } from "./server-sent-events.ts";
import { formatStatements, resetStatements } from "./statements.ts";

/*
 * `--against COMMIT`: the cost of a run here beside its cost in another commit. Both servers have fresh databases of their own and take
 * short turns, so other work of the machine affects both.
 */

/** Before that V8 has not compiled everything, and the connections of the pool still plan their statements. */
const WARM_UP_RUNS = 1_500;
const RUNS_PER_TURN = 200;
const TURNS = 20;

/** A client's work on an existing thread. */
type Work = (server: ServerUnderTest, threadId: string) => Promise<void>;

const waiting =
  (graph: string): Work =>
  async ({ remote }, threadId) => {
    const { body } = await remote.http.post(`/threads/${threadId}/runs/wait`, {
      assistant_id: graph,
      input: HELLO,
    });
    if (body.includes("__error__")) throw new Error(`A run of ${graph} failed: ${body}`);
  };

const streaming: Work = async ({ remote }, threadId) => {
  let updates = 0;
  const body = { assistant_id: "two-step", input: HELLO, stream_mode: ["updates"] };
  const onData = readEvents((name) => (updates += name === "updates" ? 1 : 0));
  await remote.http.stream(`/threads/${threadId}/runs/stream`, body, onData);
  if (updates !== 2) throw new Error(`A stream had ${updates} updates instead of 2.`);
};

/** Finds nothing: the cost of a search without its results. */
const searching: Work = async ({ remote }, threadId) => {
  await remote.http.post("/threads/search", { metadata: { owner: threadId }, limit: 10 });
};

const COMPARED: Readonly<Record<string, Work>> = {
  wait: waiting("two-step"),
  stream: streaming,
  "ten-steps": waiting("ten-steps"),
  search: searching,
};
const COMPARED_BY_DEFAULT = ["wait", "stream"];

interface Cost {
  server: number;
  database: number;
  together: number;
  statements: number;
  rows: number;
  wal: number;
  walWithoutImages: number;
}

const LABELS: Readonly<Record<keyof Cost, string>> = {
  together: "CPU together, ms",
  server: "CPU of the server, ms",
  database: "CPU of the database, ms",
  statements: "statements",
  rows: "rows written",
  wal: "WAL, KB",
  walWithoutImages: "WAL without full-page images, KB",
};

const EXTENSIONS = ["pg_stat_statements", "pg_walinspect"];

interface Sample {
  server: number;
  database: number;
  statements: number;
  position: string;
}

const sample = async (server: ServerUnderTest): Promise<Sample> => {
  const [row] = await server.query<{ statements: number; position: string }>(
    `select (select sum(calls)::float8 from pg_stat_statements s join pg_database d on d.oid = s.dbid and d.datname = 'threadloom') as statements,
       pg_current_wal_insert_lsn()::text as position`,
  );
  const cpu = await server.remote.cpu();
  return { ...cpu, statements: row?.statements ?? NaN, position: row?.position ?? "0/0" };
};

const walBetween = async (server: ServerUnderTest, from: string, to: string) => {
  // Only flushed records can be read: the commit of this record flushes all earlier ones.
  await server.query("select pg_logical_emit_message(true, 'benchmark', '')");
  const [row] = await server.query<{ bytes: number; images: number; rows: number }>(
    `select sum(combined_size) as bytes, sum(fpi_size)::float8 as images,
       coalesce(sum(count) filter (where "resource_manager/record_type" ~ '${ROW_RECORDS}'), 0)::float8 as rows
     from pg_get_wal_stats('${from}', '${to}', true)`,
  );
  return row ?? { bytes: NaN, images: NaN, rows: NaN };
};

const measureTurn = async (server: ServerUnderTest, work: Work, runs: number): Promise<Cost> => {
  const threads = await createThreads(server.remote, runs);
  const before = await sample(server);
  await run(WIDTH, runs, (index) => work(server, threads[index]!));
  const after = await sample(server);
  const { bytes, images, rows } = await walBetween(server, before.position, after.position);
  const per = (total: number): number => total / runs;
  const cpu = { server: after.server - before.server, database: after.database - before.database };
  return {
    server: per(cpu.server),
    database: per(cpu.database),
    together: per(cpu.server + cpu.database),
    // One of the two samples is counted, too.
    statements: per(after.statements - before.statements - 1),
    rows: per(rows),
    wal: per(Number(bytes)) / 1_000,
    walWithoutImages: per(Number(bytes) - images) / 1_000,
  };
};

const range = (values: readonly number[]): string =>
  `${formatNumber(median(values))} (${formatNumber(Math.min(...values))} to ${formatNumber(Math.max(...values))})`;

const report = (name: string, commit: string, there: readonly Cost[], here: readonly Cost[]): string => {
  const lines = (Object.keys(LABELS) as (keyof Cost)[]).map((key) => {
    const values = (costs: readonly Cost[]): number[] => costs.map((cost) => cost[key]);
    const ratios = values(here).map((value, turn) => value / values(there)[turn]!);
    return [LABELS[key], range(values(there)), range(values(here)), range(ratios)];
  });
  const heading = [`${name}, per run`, commit, "here", "here ÷ there, by turns"];
  return tableOf([heading, ...lines]);
};

const start = async (options: ServerOptions): Promise<ServerUnderTest> => {
  const server = await createServerUnderTest(options);
  try {
    await server.start();
    await server.prepareStatements();
    for (const name of EXTENSIONS) await server.query(`create extension if not exists ${name}`);
    await server.stop();
    await server.start();
    return server;
  } catch (error) {
    await server.close();
    throw error;
  }
};

export interface AgainstOptions {
  /** Or the folder of a checkout with its packages. */
  commit: string;
  /** Names of `COMPARED`; the default ones if left out. */
  only: readonly string[] | undefined;
  /** Runs the server of this checkout. */
  node: ServerNode;
  /** A quarter of the turns. */
  quick: boolean;
  /** Of the server of this checkout. */
  environment?: Readonly<Record<string, string>>;
  /** Also prints the statements of each server, and their cost. */
  statements: boolean;
  /** A folder for each server's CPU profile; also compares the profiles by component. */
  profileFolder: string | undefined;
  /** Collects the resources to close at the end, also on Ctrl-C. */
  closers: (() => Promise<void>)[];
  progress(text: string): void;
}

/** Compares the cost of runs here and in another commit. Returns the text to print. */
export const compareAgainst = async (options: AgainstOptions): Promise<string> => {
  const { commit, only = COMPARED_BY_DEFAULT, quick, statements, profileFolder, closers, progress } = options;
  const { node } = options;
  const unknown = only.find((name) => !(name in COMPARED));
  if (unknown !== undefined)
    throw new Error(`--against has no scenario '${unknown}'. It has: ${Object.keys(COMPARED).join(", ")}.`);
  const turns = quick ? Math.ceil(TURNS / 4) : TURNS;

  const other = await checkOut(commit, progress);
  closers.push(() => other.close());
  const servers: ServerUnderTest[] = [];
  for (const [name, place] of [
    ["there", { root: other.root }],
    ["here", { root: ROOT, node: node.path, environment: options.environment }],
  ] as const) {
    const nodeOptions =
      profileFolder === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${join(profileFolder, name)}`];
    const server = await start({ ...place, nodeOptions });
    closers.push(() => server.close());
    servers.push(server);
  }
  const [there, here] = servers as [ServerUnderTest, ServerUnderTest];

  const tables: string[] = [];
  for (const name of only) {
    const work = COMPARED[name]!;
    for (const server of servers) {
      progress(`${name}: ${WARM_UP_RUNS} runs to warm up`);
      const threads = await createThreads(server.remote, WARM_UP_RUNS);
      await run(WIDTH, WARM_UP_RUNS, (index) => work(server, threads[index]!));
      await resetStatements(server);
    }
    const costs = new Map<ServerUnderTest, Cost[]>(servers.map((server) => [server, []]));
    for (let turn = 0; turn < turns; turn += 1) {
      // Alternates the first of each pair.
      for (const server of turn % 2 === 0 ? [there, here] : [here, there])
        costs.get(server)!.push(await measureTurn(server, work, RUNS_PER_TURN));
      const [before, after] = [costs.get(there)!.at(-1)!, costs.get(here)!.at(-1)!];
      progress(
        `${name}: turn ${turn + 1} of ${turns}: ${before.together.toFixed(2)} and ${after.together.toFixed(2)} ms`,
      );
    }
    tables.push(report(name, commit, costs.get(there)!, costs.get(here)!));
    if (!statements) continue;
    for (const [label, server] of [
      [commit, there],
      ["here", here],
    ] as const)
      tables.push(`${label}:\n${await formatStatements(server)}`);
  }
  if (profileFolder !== undefined) {
    // A process writes its profile as it ends.
    for (const server of servers) await server.stop();
    const times = (name: string) => readTimes(join(profileFolder, name));
    tables.push(compareProfiles([commit, "here"], [await times("there"), await times("here")]));
  }
  const { version } = process;
  const versions = node.version === version ? version : `${version} there and ${node.version} here`;
  return `${tables.join("\n\n")}\n\nMedians (and ranges) of ${turns} turns of ${RUNS_PER_TURN} runs, ${WIDTH} at a time, after ${WARM_UP_RUNS} runs each; Node ${versions}.`;
};
