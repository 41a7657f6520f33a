import type { Queryable } from "../../database/database.ts";
import { IS_NEXT_OF_THREAD } from "./next-of-thread.ts";

/** 10 ms of the database, in each sweep of each process. */
const RUNS_PER_LOOK = 2_000;

/**
 * Puts behind others what was asked for later, is due by now, and can't start. Looks at the first $2 runs of each graph, in
 * the order in which a claim goes through them: 50,000 such runs behind one thread made each claim take 190 ms. One whose
 * turn comes at this very moment is found by `advanceForgotten`. Index: runs_claimable.
 */
const PUT_BEHIND = `with blocked as (
  select r.run_id from threadloom.runs r
  where r.status = 'pending' and not r.behind and r.run_id = any (array(
    select r.run_id from unnest($1::text[]) as hosted(graph_id) cross join lateral (
      select c.run_id, c.thread_id, c.created_at, c.available_at from threadloom.runs c
      where c.status = 'pending' and not c.behind and c.graph_id = hosted.graph_id and c.available_at <= now()
      order by c.available_at, c.created_at, c.run_id limit $2) as r
    where r.available_at > r.created_at and not (${IS_NEXT_OF_THREAD})))
  for update skip locked)
update threadloom.runs r set behind = true from blocked where r.run_id = blocked.run_id`;

/** Keeps runs of these graphs that were asked for later, are due, and can't start yet, out of the way of claims. */
export const putBehind = async (queryable: Queryable, graphIds: readonly string[]): Promise<void> => {
  await queryable.query(PUT_BEHIND, [graphIds, RUNS_PER_LOOK]);
};
