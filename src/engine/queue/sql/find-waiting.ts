import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import { ASSERT_WRITABLE } from "./assert-writable.ts";
import { IS_LATER, LANE } from "./lanes.ts";

/** Which statements may find something. A doubtful case counts as true. */
export interface Waiting {
  /** Runs for `claim`. */
  runs: boolean;
  /** Webhooks or push notifications that are due. */
  deliveries: boolean;
}

/** SQL. With an index's order PostgreSQL scans no table, whatever the statistics say. `exists` would drop the order. */
export const isSome = (from: string, order: string): string =>
  `(select true from ${from} order by ${order} limit 1) is not null`;

const ofGraph = (graphIds: string, condition: string, order: string): string => `exists (
    select from unnest(${graphIds}) as hosted(graph_id) cross join lateral (
      select from threadloom.runs r where r.graph_id = hosted.graph_id and ${condition}
      order by ${order} limit 1) as run)`;

export const laterRunIsDue = (graphIds: string): string =>
  ofGraph(graphIds, `${IS_LATER} and r.available_at <= now()`, "r.available_at");

/** The first run of every lane but that of delayed runs may start. */
const runMayStart = (graphIds: string): string => `${ofGraph(graphIds, `${LANE} < 0`, LANE)}
    or ${ofGraph(graphIds, `${LANE} > 0`, LANE)} or ${laterRunIsDue(graphIds)}`;

/** Indexes: runs_claimable, deliveries_due. */
const FIND_WAITING = statement(
  { graphIds: "text[]" },
  (sql) => `with writable as (${ASSERT_WRITABLE})
  select ${runMayStart(sql.graphIds)} as runs,
  ${isSome("threadloom.deliveries d where d.state = 'pending' and d.due_at <= now()", "d.due_at")} as deliveries`,
);

/** Throws on a standby, where a claim would fail. */
export const findWaiting = async (
  queryable: Queryable,
  hosting: { graphIds: readonly string[] },
): Promise<Waiting> => (await FIND_WAITING.query<Waiting>(queryable, hosting))[0]!;
