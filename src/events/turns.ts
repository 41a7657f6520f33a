import type { Database } from "../database/database.ts";
import type { RunAddress } from "./log.ts";

/** The newest attempt of a run that has begun. */
export interface BegunRun extends RunAddress {
  attempt: number;
  turn: number;
  resumable: boolean;
}

/**
 * `over` grows with each attempt of the thread that comes to its end, see queue/README.md. Null: nothing is executed.
 * Indexes: threads_pkey, runs_one_running_per_thread.
 */
const HEAD = `select t.turns - t.unfinished_runs as over,
    (select r.turn from threadloom.runs r where r.thread_id = t.thread_id and r.status = 'running' limit 1) as running
  from threadloom.threads t where t.thread_id = $1`;

/**
 * From turn $2 on; of what has ended only what is logged, or is in memory here ($3). All runs of the thread are looked at, by
 * runs_by_thread: which takes 8 ms for 10,000 of them, so it is asked only if something has begun or ended (0.1 ms). Also
 * run_events_pkey.
 */
const NEXT = `select r.run_id, r.turn, r.attempt, r.resumable from threadloom.runs r
  where r.thread_id = $1 and r.turn >= $2 and (r.status = 'running' or (r.status <> 'pending' and (
    r.run_id = any($3::uuid[])
    or exists (select from threadloom.run_events e where e.thread_id = r.thread_id and e.run_id = r.run_id))))
  order by r.turn limit 1`;

/** The runs of a thread in the order in which their attempts began. */
export const createTurns = (database: Database) => ({
  /** What changes when an attempt of the thread begins or ends; undefined if there is no such thread. */
  async head(threadId: string): Promise<{ over: number; running: number | null } | undefined> {
    return (await database.query<{ over: number; running: number | null }>(HEAD, [threadId]))[0];
  },

  /** The run with the lowest turn from `from` on of which there are events to be read. `here`: runs in memory. */
  async next(threadId: string, from: number, here: readonly string[]): Promise<BegunRun | undefined> {
    const [row] = await database.query<{ run_id: string; turn: number; attempt: number; resumable: boolean }>(
      NEXT,
      [threadId, Math.max(from, 1), here],
    );
    if (row === undefined) return undefined;
    const { run_id: runId, turn, attempt, resumable } = row;
    return { threadId, runId, turn, attempt, resumable };
  },
});

export type Turns = ReturnType<typeof createTurns>;
