import type { Queryable } from "../../database/database.ts";
import { nextBehind } from "./next-of-thread.ts";

/** 3 ms of the database, in each sweep of each process. */
const THREADS_PER_LOOK = 500;
export const FIRST_THREAD = "00000000-0000-0000-0000-000000000000";

/** From thread to thread by the index runs_behind: $2 of them, those after $1. */
const ADVANCE_FORGOTTEN = `with recursive threads_behind as (
  (select r.thread_id, 1 as place from threadloom.runs r
   where r.status = 'pending' and r.behind and r.thread_id > $1 order by r.thread_id limit 1)
  union all
  select (select r.thread_id from threadloom.runs r
          where r.status = 'pending' and r.behind and r.thread_id > t.thread_id order by r.thread_id limit 1),
    t.place + 1
  from threads_behind t where t.thread_id is not null and t.place < $2),
advanced as (
  update threadloom.runs r set behind = false
  where r.status = 'pending' and r.run_id = any (array(
    select (${nextBehind("t.thread_id")}) from threads_behind t where t.thread_id is not null))
  returning r.run_id)
select (select thread_id from threads_behind where place = $2) as last,
  coalesce((select array_agg(run_id) from advanced), '{}') as run_ids`;

/**
 * As `advance`, for threads on which nobody did, because a process died between the end of a run and `advance`: some of
 * them, those after `lookedUpTo`. Answers the runs that may start, and where the next look begins.
 */
export const advanceForgotten = async (
  queryable: Queryable,
  lookedUpTo: string,
): Promise<{ runIds: string[]; lookedUpTo: string }> => {
  const [row] = await queryable.query<{ last: string | null; run_ids: string[] }>(ADVANCE_FORGOTTEN, [
    lookedUpTo,
    THREADS_PER_LOOK,
  ]);
  return { runIds: row?.run_ids ?? [], lookedUpTo: row?.last ?? FIRST_THREAD };
};
