import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import type { Harm } from "../fixtures/harms.ts";
import { apiOf, type Api } from "../helpers/api.ts";
import { eventually } from "../helpers/conditions.ts";
import { spawnServer, type ServerProcess } from "../helpers/server-process.ts";
import { temporaryFolder } from "../helpers/temporary-folder.ts";

const graphsOf = (version: string): string =>
  fileURLToPath(new URL(`./graphs/${version}.json`, import.meta.url));
export const FAULTY_SERVER = "test/fixtures/faulty-server.ts";

/** The records of the graph `ledger` outside the database. */
export interface LedgerLine {
  run: string;
  attempt: number;
  step: number;
  phase: "begin" | "end";
  pid: number;
  at: number;
}

export interface Replica {
  url: string;
  api: Api;
  pid: number;
  process: ServerProcess;
  signal(signal: NodeJS.Signals): void;
  isAlive(): boolean;
}

export interface StartOptions {
  /** The address of the database; the bench's own if left out. */
  connectionString?: string;
  environment?: Record<string, string>;
  entry?: string;
  version?: string;
}

/** Real server processes on one database, with direct access to its tables. */
export const openBench = async (connectionString: string) => {
  const folder = await temporaryFolder();
  const ledgerFile = join(folder.path, "ledger");
  await writeFile(ledgerFile, "");
  const replicas: Replica[] = [];
  const pool = new pg.Pool({ connectionString, max: 2, application_name: "fault test" });
  pool.on("error", () => undefined);

  const query = async <Row extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<Row[]> =>
    (await pool.query<Row>(text, values)).rows;

  const ledger = async (): Promise<LedgerLine[]> =>
    (await readFile(ledgerFile, "utf8"))
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as LedgerLine);

  const bench = {
    connectionString,
    query,
    ledger,

    async start({
      environment = {},
      entry,
      version = "langgraph",
      ...options
    }: StartOptions = {}): Promise<Replica> {
      const started = spawnServer(
        ["--config", graphsOf(version), "--port", "0"],
        {
          DATABASE_URL: options.connectionString ?? connectionString,
          LEDGER_FILE: ledgerFile,
          LOG_LEVEL: "debug",
          BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: "1",
          ...environment,
        },
        entry,
      );
      const { child } = started;
      const replica: Replica = {
        url: "",
        api: apiOf({ url: "" }),
        pid: child.pid ?? 0,
        process: started,
        signal: (signal) => void child.kill(signal),
        isAlive: () => child.exitCode === null && child.signalCode === null,
      };
      replicas.push(replica);
      replica.url = await started.address();
      replica.api = apiOf(replica);
      return replica;
    },

    /** The matching ledger lines of a run, once there are any. */
    untilNoted: (
      what: string,
      matches: (line: LedgerLine) => boolean,
      withinMs?: number,
    ): Promise<LedgerLine> => eventually(what, async () => (await ledger()).find(matches), withinMs),

    /** A run whose last step was stored when its process died ends without another line. `at`: unix ms. */
    untilGoesOnOrEnds: (run: string, at: number): Promise<true> =>
      eventually(`run ${run} goes on or has ended`, async () => {
        if ((await ledger()).some((line) => line.run === run && line.at > at)) return true;
        const open = await query(
          "select 1 from threadloom.runs where run_id = $1 and status in ('pending', 'running')",
          [run],
        );
        return open.length === 0 || undefined;
      }),

    /** Waits until no run waits or runs; returns the number of unfinished runs after that time. */
    async untilAllEnded(withinMs?: number): Promise<number> {
      const unfinished = async (): Promise<number> =>
        (
          await query<{ count: number }>(
            "select count(*)::int as count from threadloom.runs where status in ('pending', 'running')",
          )
        )[0]?.count ?? 0;
      await eventually("every run has ended", async () => (await unfinished()) === 0, withinMs).catch(
        () => 0,
      );
      return await unfinished();
    },

    /**
     * How often two attempts of one run were both allowed to write: checkpoints with two successors, events of an attempt that are newer
     * than the next one's first, ledgers with a doubled or missing step, and threads that count missing runs.
     */
    async doubledWinners(): Promise<number> {
      const forks = await query(
        `select 1 from threadloom.checkpoints where checkpoint_ns = '' and parent_id is not null
         group by thread_id, parent_id having count(*) > 1`,
      );
      const lateEvents = await query(
        `select 1 from threadloom.run_events early join threadloom.run_events late on late.thread_id = early.thread_id
           and late.run_id = early.run_id and late.seq / 100000000 > early.seq / 100000000 and late.created_at < early.created_at
         group by early.run_id, early.seq`,
      );
      const miscounted = await query(
        `select 1 from threadloom.threads t where unfinished_runs <>
           (select count(*) from threadloom.runs r where r.thread_id = t.thread_id and r.status in ('pending', 'running'))`,
      );
      return forks.length + lateEvents.length + miscounted.length;
    },

    errors: (): string[] =>
      replicas.flatMap(({ process: server }) =>
        server
          .output()
          .split("\n")
          .filter((line) => /"level":(50|60|"error"|"fatal")|^\w*Error/.test(line)),
      ),

    async stop(replica: Replica): Promise<void> {
      replica.signal("SIGCONT");
      await replica.process.kill();
    },

    async close(): Promise<void> {
      await Promise.all(replicas.map((replica) => bench.stop(replica)));
      await pool.end();
      await folder.remove();
    },
  };
  return bench;
};

export type Bench = Awaited<ReturnType<typeof openBench>>;

/** An acknowledged run of the ledger graph. */
export interface LedgerRun {
  threadId: string;
  runId: string;
  steps: number;
}

export const aLedgerRun = async (
  { api }: Pick<Replica, "api">,
  {
    steps,
    milliseconds,
    harm,
    harmAt,
    harmAttempts,
    ...fields
  }: { steps: number; milliseconds: number; harm?: Harm; harmAt?: number; harmAttempts?: number } & Record<
    string,
    unknown
  >,
): Promise<LedgerRun> => {
  const threadId = await api.aThread();
  const run = await api.aRun(threadId, {
    assistant_id: "ledger",
    input: { steps, milliseconds, harm, harmAt, harmAttempts },
    durability: "sync",
    config: { recursion_limit: steps + 5 },
    ...fields,
  });
  return { threadId, runId: run.run_id, steps };
};

/** The faults of ended ledger runs: not `success`, or with missing or doubled steps. */
export const faultsOf = async (api: Api, runs: readonly LedgerRun[]): Promise<string[]> => {
  const found: string[] = [];
  for (const { threadId, runId, steps } of runs) {
    const run = await api.run(threadId, runId);
    if (run.status !== "success") {
      found.push(`run ${runId} is ${run.status}: ${JSON.stringify((await api.thread(threadId)).error)}`);
      continue;
    }
    const { values } = await api.state(threadId);
    const done = JSON.stringify(values["done"]);
    const wanted = JSON.stringify(Array.from({ length: steps }, (_, index) => index + 1));
    if (done !== wanted) found.push(`run ${runId} did ${done}`);
  }
  return found;
};

export const percentile = (values: readonly number[], share: number): number => {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
};

export const seconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(1)} s`;
