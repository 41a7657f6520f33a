import pg from "pg";
import { AUTH_CONFIG, UNLIMITED } from "../access.ts";
import { clusterCpuMs, processCpuMs } from "../cpu.ts";
import { createHttpClient, type HttpClient } from "../http-client.ts";
import { median, now, percentile } from "../load.ts";
import { HELLO, type Bench, type Scenario, type ThreadAnswer } from "../scenario.ts";
import type { Replica } from "../server-process.ts";
import { measureRuns } from "./backlog.ts";
import { measureClaims } from "./claims.ts";
import { fill, OWNER_OF_MANY, settle, type Filled, type Size } from "./fill.ts";
import { clientsOfOwners, readsOf, type Read } from "./reads.ts";

const FULL: Size = {
  threads: 200_000,
  owners: 5_000,
  assistants: 2_000,
  crons: 2_000,
  storeItems: 100_000,
  longTurns: 250,
};
/** Of `--quick`. */
const QUICK_SHARE = 0.1;

/** Each read is repeated this often, or for this long. */
const ASKED = { warmUp: 20, warmUpMs: 500, measured: 100, measuredMs: 1_200 };

const RUNS = 400;
const RUN_ROUNDS = 5;
const CLAIMS = 1_000;

const sizeOf = (bench: Bench): Size =>
  bench.scale < 1
    ? (Object.fromEntries(
        Object.entries(FULL).map(([name, count]) => [name, count * QUICK_SHARE]),
      ) as unknown as Size)
    : FULL;

const words = (count: number): string => count.toLocaleString("en-US");

/** CPU milliseconds so far of the server processes and of the database, if that is on this machine. */
const cpuReader = async (client: pg.Client, replicas: readonly Replica[]) => {
  const { rows } = await client.query<{ pid: string }>(
    "select split_part(pg_read_file('postmaster.pid'), E'\\n', 1) as pid",
  );
  const postmaster = Number(rows[0]?.pid);
  return async () => {
    const servers = await Promise.all(replicas.map(({ pid }) => processCpuMs(pid)));
    return { server: servers.reduce((sum, ms) => sum + ms, 0), database: await clusterCpuMs(postmaster) };
  };
};

/** Repeats the request until the number or the time is reached. Returns the milliseconds of each. */
const reauthorize = async (read: Read, times: number, forMs: number, from: number): Promise<number[]> => {
  const latencies: number[] = [];
  const end = now() + forMs;
  while (latencies.length < times && now() < end) {
    const started = now();
    await read.ask(from + latencies.length);
    latencies.push(now() - started);
  }
  return latencies;
};

const measureReads = async (
  bench: Bench,
  reads: readonly Read[],
  cpu: Awaited<ReturnType<typeof cpuReader>>,
): Promise<void> => {
  const add = (label: string, value: number, wanted?: string): void =>
    bench.figures.add(
      "scale",
      { label, unit: "ms", better: "less", ...(wanted !== undefined && { wanted }) },
      "threadloom",
      value,
    );
  for (const read of reads) await reauthorize(read, ASKED.warmUp, ASKED.warmUpMs, 0);
  for (let repeat = 0; repeat < bench.repeats; repeat += 1) {
    for (const read of reads) {
      const before = await cpu();
      const latencies = await reauthorize(
        read,
        ASKED.measured,
        ASKED.measuredMs,
        ASKED.warmUp + repeat * ASKED.measured,
      );
      const after = await cpu();
      const [p50, p99] = [percentile(latencies, 0.5), percentile(latencies, 0.99)];
      const server = (after.server - before.server) / latencies.length;
      const database = (after.database - before.database) / latencies.length;
      add(`${read.label}: p50`, p50, read.wanted);
      add(`${read.label}: p99`, p99);
      add(`${read.label}: CPU`, server + database);
      bench.progress(
        `scale: ${read.label}: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms of ${latencies.length}; ` +
          `CPU ${server.toFixed(1)} ms of the server, ${database.toFixed(1)} ms of the database`,
      );
    }
  }
};

const compareRuns = async (bench: Bench, replica: Replica, client: pg.Client): Promise<void> => {
  const waiting = bench.scale < 1 ? 500 : 5_000;
  const count = bench.scale < 1 ? RUNS / 4 : RUNS;
  const rounds = bench.scale < 1 ? 1 : RUN_ROUNDS;
  const add = (label: string, unit: string, value: number, wanted?: string): void =>
    bench.figures.add(
      "scale",
      { label, unit, better: "more", ...(wanted !== undefined && { wanted }) },
      "threadloom",
      value,
    );
  await measureRuns(replica, client, { waiting: 0, count });
  const ratios: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const empty = await measureRuns(replica, client, { waiting: 0, count });
    const full = await measureRuns(replica, client, { waiting, count });
    const ratio = full.ended / empty.ended;
    ratios.push(ratio);
    add("runs, empty queue", "runs/s", empty.ended);
    add(`runs, ${words(waiting)} waiting`, "runs/s", full.ended);
    add(`runs, ${words(waiting)} waiting: created meanwhile`, "runs/s", full.created);
    add(`runs, ${words(waiting)} waiting ÷ empty queue`, "", ratio, ">= 0.9");
    bench.progress(
      `scale: ${empty.ended.toFixed(0)} runs/s ended, with ${words(waiting)} waiting ${full.ended.toFixed(0)}, ` +
        `while ${full.created.toFixed(0)} came`,
    );
  }
  bench.progress(
    `scale: with ${words(waiting)} waiting ${median(ratios).toFixed(2)} times as many runs per second`,
  );
};

const compareClaims = async (bench: Bench, connectionString: string): Promise<void> => {
  const numbers = bench.scale < 1 ? [10, 500, 5_000] : [10, 5_000, 50_000];
  for (const waiting of numbers) {
    const claims = bench.scale < 1 ? CLAIMS / 4 : CLAIMS;
    const { cpuMs, p50Ms, buffers } = await measureClaims(connectionString, waiting, claims);
    const add = (what: string, unit: string, value: number): void =>
      bench.figures.add(
        "scale",
        { label: `claim, ${words(waiting)} waiting: ${what}`, unit, better: "less" },
        "threadloom",
        value,
      );
    add("CPU of the backend", "ms", cpuMs);
    add("p50", "ms", p50Ms);
    add("buffers", "blocks", buffers);
    bench.progress(
      `scale: a claim beside ${words(waiting)}: ${cpuMs.toFixed(2)} ms of CPU, p50 ${p50Ms.toFixed(2)} ms, ${buffers} blocks`,
    );
  }
};

const onceAt = async (connectionString: string, statement: string): Promise<void> => {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
};

/** Creates a database of its own for the work, and removes it. */
const withDatabase = async (
  bench: Bench,
  work: (connectionString: string) => Promise<void>,
): Promise<void> => {
  const home = bench.database ?? (await bench.server.connectionString("threadloom"));
  const name = `threadloom_scale_${process.pid}`;
  const drop = (): Promise<void> => onceAt(home, `drop database if exists ${name} with (force)`);
  bench.atEnd(drop);
  await onceAt(home, `create database ${name}`);
  const own = new URL(home);
  own.pathname = `/${name}`;
  await work(own.href);
  await drop();
};

const makerOfThreads =
  ({ http }: Replica) =>
  async (turns: number): Promise<string> => {
    const { thread_id: threadId } = await http.json<ThreadAnswer>("/threads", {});
    for (let turn = 0; turn < turns; turn += 1)
      await http.post(`/threads/${threadId}/runs/wait`, { assistant_id: "two-step", input: HELLO });
    return threadId;
  };

/** All reads, on two servers: one without filters, one whose `Auth` shows owners only their own records. */
const readAll = async (
  bench: Bench,
  { size, filled, client }: { size: Size; filled: Filled; client: pg.Client },
  replicas: { open: Replica; auth: Replica },
): Promise<void> => {
  const clients: HttpClient[] = [];
  const connect = (owner: string): HttpClient => {
    const http = createHttpClient(replicas.auth.address, { authorization: `Bearer ${owner}` });
    clients.push(http);
    return http;
  };
  try {
    const reads = await readsOf(
      {
        all: replicas.open.http,
        owners: clientsOfOwners(size, connect),
        ownerOfMany: connect(OWNER_OF_MANY),
      },
      size,
      filled,
    );
    await measureReads(bench, reads, await cpuReader(client, [replicas.open, replicas.auth]));
  } finally {
    for (const http of clients) http.close();
  }
};

export const scale: Scenario = {
  name: "scale",
  about: `${words(FULL.threads)} threads, ${words(FULL.threads * 5)} checkpoints: searches, lists, counts, states, claims, runs while 5,000 wait`,
  onRequest: true,
  async run(bench) {
    const size = sizeOf(bench);
    await withDatabase(bench, async (connectionString) => {
      const client = new pg.Client({ connectionString });
      await client.connect();
      const environment = { ...UNLIMITED, DATABASE_URL: connectionString };
      const replicas: Replica[] = [];
      const start = async (argv: readonly string[] = []): Promise<Replica> => {
        const replica = await bench.server.startReplica({
          argv,
          environment,
          headers: { authorization: `Bearer ${OWNER_OF_MANY}` },
        });
        replicas.push(replica);
        return replica;
      };
      try {
        const open = await start();
        const filled = await fill(client, makerOfThreads(open), size, (text) =>
          bench.progress(`scale: ${text}`),
        );
        bench.progress(`scale: ${words(filled.checkpoints)} checkpoints`);
        await settle(client);
        const auth = await start(["--config", AUTH_CONFIG]);
        await readAll(bench, { size, filled, client }, { open, auth });
        await auth.stop();
        await compareRuns(bench, open, client);
        await open.stop();
        await compareClaims(bench, connectionString);
      } finally {
        await Promise.all(replicas.map((replica) => replica.stop()));
        await client.end();
      }
    });
  },
};
