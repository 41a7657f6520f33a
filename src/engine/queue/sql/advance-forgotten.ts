import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { RunSelector } from "../attempts.ts";
import { nextBehind } from "./next-of-thread.ts";

/** Costs the database 3 ms per sweep and process. */
const THREADS_PER_POLL = 500;
export const FIRST_THREAD = "00000000-0000-0000-0000-000000000000";

/** Index: runs_behind, one lookup per thread. claim.ts explains the status expression. */
const ADVANCE_FORGOTTEN = statement(
  { checkedUpTo: "uuid", threads: "integer" },
  (sql) => `with recursive threads_behind as (
  (select r.thread_id, 1 as place from threadloom.runs r
   where r.status = 'pending' and r.behind and r.thread_id > ${sql.checkedUpTo} order by r.thread_id limit 1)
  union all
  select (select r.thread_id from threadloom.runs r
          where r.status = 'pending' and r.behind and r.thread_id > t.thread_id order by r.thread_id limit 1),
    t.place + 1
  from threads_behind t where t.thread_id is not null and t.place < ${sql.threads}),
advanced as (
  update threadloom.runs r set behind = false
  where r.status || '' = 'pending' and r.behind and r.run_id = any (array(
    select (${nextBehind("t.thread_id")}) from threads_behind t where t.thread_id is not null))
  returning r.thread_id, r.run_id)
select (select thread_id from threads_behind where place = ${sql.threads}) as last,
  coalesce((select json_agg(json_build_object('threadId', thread_id, 'runId', run_id)) from advanced), '[]') as runs`,
);

/**
 * Repairs threads whose process died between the end of a run and `advance`. Checks a page of threads;
 * returns the runs that may start and the position of the next page.
 */
export const advanceForgotten = async (
  queryable: Queryable,
  checkedUpTo: string,
): Promise<{ runs: RunSelector[]; checkedUpTo: string }> => {
  const [row] = await ADVANCE_FORGOTTEN.query<{ last: string | null; runs: RunSelector[] }>(queryable, {
    checkedUpTo,
    threads: THREADS_PER_POLL,
  });
  return { runs: row?.runs ?? [], checkedUpTo: row?.last ?? FIRST_THREAD };
};
