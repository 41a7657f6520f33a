import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { RunSelector } from "../attempts.ts";
import { IS_LATER } from "./lanes.ts";
import { IS_NEXT_OF_THREAD, nextBehind } from "./next-of-thread.ts";

/* The mark `behind`, which keeps claims from reading runs that can't start (engine/queue/README.md). */

/** Indexes: runs_pkey (claim.ts explains the status expression), runs_behind, those of `nextBehind`. */
const ADVANCE = statement(
  { threadIds: "uuid[]" },
  (sql) => `update threadloom.runs r set behind = false
  where r.status || '' = 'pending' and r.behind and r.run_id = any (array(
    select (${nextBehind("t.thread_id")}) from unnest(${sql.threadIds}) as t(thread_id)))`,
);

/**
 * Lets the next run of each thread start. Call it in or after the transaction that ended the run: an earlier
 * snapshot still sees that run as running.
 */
export const advance = async (queryable: Queryable, threadIds: readonly string[]): Promise<void> => {
  await ADVANCE.query(queryable, { threadIds });
};

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

/** Costs the database 10 ms per sweep and process. */
const RUNS_PER_POLL = 2_000;

/**
 * If a run may start at this very moment, `advanceForgotten` repairs a wrong `behind`. Indexes:
 * runs_claimable, runs_pkey (claim.ts explains the status expression).
 */
const PUT_BEHIND = statement(
  { graphIds: "text[]" },
  (sql) => `with blocked as (
  select r.run_id from threadloom.runs r
  where r.status || '' = 'pending' and not r.behind and r.run_id = any (array(
    select r.run_id from unnest(${sql.graphIds}) as hosted(graph_id) cross join lateral (
      select r.run_id, r.thread_id, r.created_at, r.available_at from threadloom.runs r
      where r.graph_id = hosted.graph_id and ${IS_LATER} and r.available_at <= now()
      order by r.available_at, r.created_at, r.run_id limit ${RUNS_PER_POLL}) as r
    where not (${IS_NEXT_OF_THREAD})))
  for update skip locked)
update threadloom.runs r set behind = true from blocked where r.run_id = any(array[blocked.run_id])`,
);

/** Marks delayed runs that are due but can't start, so that claims do not read them. */
export const putBehind = async (queryable: Queryable, graphIds: readonly string[]): Promise<void> => {
  await PUT_BEHIND.query(queryable, { graphIds });
};
