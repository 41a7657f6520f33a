import type pg from "pg";
import { pause, run, WIDTH } from "../load.ts";
import { createThreads, HELLO } from "../scenario.ts";
import type { Replica } from "../server-process.ts";
import { REMOVE_UNFINISHED } from "./claims.ts";

/** Runs that end before the clock starts, because the waiting ones were not announced to the server. */
const FIRST_RUNS = 50;
/** A slow machine does fewer runs in this time. */
const SECONDS_AT_MOST = 4;
const POLL_MS = 20;

interface RunAddress {
  thread_id: string;
  run_id: string;
}

/**
 * $1: the number of waiting runs to add, like the newest successful one, each on a thread of its own. In the order in which they are
 * claimed.
 */
const ADD_WAITING = `with template as (
  select assistant_id, graph_id, metadata, config, kwargs from threadloom.runs
  where graph_id = 'two-step' and status = 'success' order by run_id desc limit 1),
thread as (
  insert into threadloom.threads (thread_id, status, metadata, unfinished_runs, turns)
  select gen_random_uuid(), 'busy', template.metadata, 1, 1 from template, generate_series(1, $1::int)
  returning thread_id),
added as (
  insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, metadata, config, kwargs,
    multitask_strategy)
  select gen_random_uuid(), thread.thread_id, template.assistant_id, template.graph_id, 'pending', template.metadata,
    template.config, template.kwargs, 'enqueue' from thread, template
  returning thread_id, run_id, available_at, created_at)
select thread_id, run_id from added order by available_at, created_at, run_id`;

const addWaiting = async (client: pg.Client, count: number): Promise<RunAddress[]> => {
  const { rows } = await client.query<RunAddress>(ADD_WAITING, [count]);
  return rows;
};

const emptyQueue = async (client: pg.Client): Promise<void> => {
  await client.query(REMOVE_UNFINISHED);
  for (;;) {
    const { rows } = await client.query(
      "select from threadloom.runs where status = 'pending' union all select from threadloom.runs where status = 'running' limit 1",
    );
    if (rows.length === 0) return;
    await pause(POLL_MS);
  }
};

const countWaiting = async (client: pg.Client): Promise<number> => {
  const { rows } = await client.query<{ waiting: number }>(
    "select count(*)::int as waiting from threadloom.runs where status = 'pending'",
  );
  return rows[0]!.waiting;
};

/** The rates of a server per second. */
export interface RunRates {
  created: number;
  ended: number;
}

/**
 * Runs per second of a server while about `waiting` runs wait: each of `WIDTH` clients creates a run and waits for the end of the oldest
 * one. With 0 it waits for its own. Slots are never free while runs wait, so more runs end than are created.
 */
export const measureRuns = async (
  replica: Replica,
  client: pg.Client,
  { waiting, count }: { waiting: number; count: number },
): Promise<RunRates> => {
  const threads = await createThreads(replica, FIRST_RUNS + count);
  try {
    const queue = waiting === 0 ? [] : await addWaiting(client, waiting);
    await client.query("analyze threadloom.runs, threadloom.threads");
    const oneMore = async (index: number): Promise<void> => {
      const created = await replica.http.json<RunAddress>(`/threads/${threads[index]}/runs`, {
        assistant_id: "two-step",
        input: HELLO,
      });
      queue.push(created);
      const oldest = queue.shift()!;
      await replica.http.get(`/threads/${oldest.thread_id}/runs/${oldest.run_id}/join`);
    };
    const first = await run(WIDTH, FIRST_RUNS, oneMore);
    const created = Math.min(count, Math.max(FIRST_RUNS, Math.round(first.perSecond * SECONDS_AT_MOST)));
    const before = await countWaiting(client);
    const { perSecond } = await run(WIDTH, created, (index) => oneMore(FIRST_RUNS + index));
    const ended = before + created - (await countWaiting(client));
    return { created: perSecond, ended: (ended / created) * perSecond };
  } finally {
    await emptyQueue(client);
  }
};
