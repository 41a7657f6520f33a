import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import { IS_LATER } from "./lanes.ts";
import { IS_NEXT_OF_THREAD } from "./next-of-thread.ts";

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
