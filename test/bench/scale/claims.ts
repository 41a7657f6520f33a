import pg from "pg";
import type { Database } from "../../../src/platform/database/database.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { createQueue } from "../../../src/engine/queue/queue.ts";
import { processCpuMs } from "../cpu.ts";
import { now, percentile } from "../load.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

const GRAPH = "waiting";
const CALLERS = 60;
const LEASE_SECONDS = 60;
const BUFFER_SAMPLES = 5;
const SECONDS_AT_MOST = 10;

export interface ClaimCost {
  /** Milliseconds of CPU of the backend, and of the clock, for one claim of one run. */
  cpuMs: number;
  p50Ms: number;
  buffers: number;
}

/** $1: the number of waiting runs, each on a thread of its own. */
const ADD_WAITING = `with thread as (
  insert into threadloom.threads (thread_id, status, unfinished_runs, turns)
  select gen_random_uuid(), 'busy', 1, 1 from generate_series(1, $1::int) returning thread_id),
numbered as (select thread_id, row_number() over () as number from thread)
insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, caller)
select gen_random_uuid(), thread_id, gen_random_uuid(), '${GRAPH}', 'pending', '{}', 'enqueue',
  'user:' || (number + random() * ${CALLERS})::int % ${CALLERS} from numbered`;

const END_RUN = `with ended as (
  update threadloom.runs set status = 'success', lease_until = null, updated_at = now() where run_id = $1 returning thread_id)
update threadloom.threads set status = 'idle', unfinished_runs = 0 where thread_id in (select thread_id from ended)`;

export const REMOVE_UNFINISHED = `delete from threadloom.threads where thread_id in (
  select thread_id from threadloom.runs where status = 'pending' union all
  select thread_id from threadloom.runs where status = 'running')`;

interface Explained {
  "QUERY PLAN": { Plan: { "Shared Hit Blocks": number; "Shared Read Blocks": number } }[];
}

/** Blocks that one claim reads; the claimed run is put back. */
const buffersOfClaim = async (database: Database): Promise<number> => {
  const samples: number[] = [];
  const putBack = new Error("put back");
  const explaining: Pick<Database, "query"> = {
    async query<Row>(text: string, values: unknown[] = []): Promise<Row[]> {
      await database
        .transaction(async (transaction) => {
          const [row] = await transaction.query<Explained>(
            `explain (analyze, buffers, format json) ${text}`,
            values,
          );
          const plan = row!["QUERY PLAN"][0]!.Plan;
          samples.push(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]);
          throw putBack;
        })
        .catch((error: unknown) => {
          if (error !== putBack) throw error;
        });
      return [];
    },
  };
  const queue = createQueue({ ...database, ...explaining }, { maxAttempts: 3, graphIds: [GRAPH] });
  for (let count = 0; count < BUFFER_SAMPLES; count += 1) await queue.claim(newId(), LEASE_SECONDS, 1);
  return percentile(samples, 0.5);
};

/** Claims one run after the other while `waiting` of them wait: each claimed run ends, and another one is added. `claims`: at most. */
export const measureClaims = async (
  connectionString: string,
  waiting: number,
  claims: number,
): Promise<ClaimCost> => {
  const others = new pg.Client({ connectionString });
  await others.connect();
  // One connection: the backend whose CPU is measured.
  const database = openTestDatabase(connectionString);
  try {
    await others.query(ADD_WAITING, [waiting]);
    await others.query("vacuum (analyze) threadloom.runs, threadloom.threads");
    const queue = createQueue(database, { maxAttempts: 3, graphIds: [GRAPH] });
    const workerId = newId();
    const latencies: number[] = [];
    const claimAndReplace = async (): Promise<void> => {
      const started = now();
      const [run] = await queue.claim(workerId, LEASE_SECONDS, 1);
      latencies.push(now() - started);
      if (run === undefined) throw new Error(`Nothing could be claimed though ${waiting} runs wait.`);
      await others.query(END_RUN, [run.run_id]);
      await others.query(ADD_WAITING, [1]);
    };
    for (let count = 0; count < Math.min(50, claims); count += 1) await claimAndReplace();
    latencies.length = 0;
    const [backend] = await database.query<{ pid: number }>("select pg_backend_pid() as pid");
    const before = await processCpuMs(backend!.pid);
    for (const end = now() + SECONDS_AT_MOST * 1_000; latencies.length < claims && now() < end;)
      await claimAndReplace();
    const cpuMs = ((await processCpuMs(backend!.pid)) - before) / latencies.length;
    return { cpuMs, p50Ms: percentile(latencies, 0.5), buffers: await buffersOfClaim(database) };
  } finally {
    await others.query(REMOVE_UNFINISHED);
    await others.end();
    await database.close();
  }
};
