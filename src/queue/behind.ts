import type { Queryable } from "../database/database.ts";

/**
 * The first of the runs of a thread that wait behind another one, if that one is gone: nothing of the thread runs, and
 * nothing older of it could start. A younger one may be due by now, but a claim takes it only after this one: if that
 * kept this one back, neither would ever start. `thread`: SQL. Indexes: runs_behind, runs_one_running_per_thread,
 * runs_pending_of_thread.
 */
export const nextBehind = (thread: string): string => `
  select x.run_id from (
    select b.thread_id, b.created_at, b.run_id from threadloom.runs b
    where b.thread_id = ${thread} and b.status = 'pending' and b.behind
    order by b.created_at, b.run_id limit 1) as x
  where (select 1 from threadloom.runs y where y.thread_id = x.thread_id and y.status = 'running' limit 1) is null
    and (select 1 from threadloom.runs y where y.thread_id = x.thread_id and y.status = 'pending' and not y.behind
           and y.available_at <= now() and (y.created_at, y.run_id) < (x.created_at, x.run_id) limit 1) is null`;

const ADVANCE = `update threadloom.runs r set behind = false
  where r.status = 'pending' and r.run_id = any (array(
    select (${nextBehind("t.thread_id")}) from unnest($1::uuid[]) as t(thread_id)))`;

/**
 * Lets the next run of each thread start, after one of it has ended while others wait: see queue/claims.ts. Only after
 * the transaction that ended it, or in it: a look from before would still see that run.
 */
export const advance = async (queryable: Queryable, threadIds: readonly string[]): Promise<void> => {
  await queryable.query(ADVANCE, [threadIds]);
};
