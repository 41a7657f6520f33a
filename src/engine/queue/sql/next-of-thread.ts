/**
 * A run that has begun keeps its thread until it ends, also while it waits for another process: a run in between would
 * move the state from which it continues. The condition of the index runs_one_begun_per_thread.
 */
const hasBegun = (run: string): string =>
  `(${run}.status = 'running' or (${run}.status = 'pending' and ${run}.attempt > 0))`;

const begunRun = (thread: string): string =>
  `(select x.run_id from threadloom.runs x where x.thread_id = ${thread} and ${hasBegun("x")} limit 1)`;

/**
 * A pending run that has begun, or else the oldest available run of a thread on which none has. Scalar subqueries cost
 * one index lookup per row; `not exists` became an anti join (115 ms per claim instead of 1 at 600 pending runs).
 * Indexes: runs_one_begun_per_thread, runs_pending_of_thread.
 */
export const IS_NEXT_OF_THREAD = `
  coalesce(${begunRun("r.thread_id")},
    (select x.run_id from threadloom.runs x
     where x.thread_id = r.thread_id and x.status = 'pending' and x.available_at <= now()
     order by x.created_at, x.run_id limit 1)) = r.run_id`;

/**
 * The run that has begun, or else the first run with `behind`, if no older run may start; the caller checks that it
 * is pending and `behind`. Younger available runs do not count: a claim takes them only after this one, so neither
 * would start.
 *
 * `thread`: SQL. Indexes: runs_one_begun_per_thread, runs_behind, runs_pending_of_thread.
 */
export const nextBehind = (thread: string): string => `
  select coalesce(${begunRun(thread)}, (select x.run_id from (
    select b.thread_id, b.created_at, b.run_id from threadloom.runs b
    where b.thread_id = ${thread} and b.status = 'pending' and b.behind
    order by b.created_at, b.run_id limit 1) as x
  where (select 1 from threadloom.runs y where y.thread_id = x.thread_id and y.status = 'pending' and not y.behind
           and y.available_at <= now() and (y.created_at, y.run_id) < (x.created_at, x.run_id) limit 1) is null))`;
