import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { ExecutedRunRow } from "../../../platform/database/tables.ts";
import { EXECUTED_COLUMNS, openRuns } from "../columns.ts";
import { HOSTED_GRAPHS } from "../hosting.ts";
import { missesHeartbeats, MISSED_HEARTBEAT_PARAMETERS, type MissedHeartbeats } from "./missed-heartbeats.ts";

interface Abandoned extends MissedHeartbeats {
  graphIds: readonly string[];
}

/**
 * `silent` is materialized: otherwise PostgreSQL 17 and older prefer an ordered scan of all runs. Index: see
 * `missesHeartbeats`.
 */
const LIST_ABANDONED = statement(
  {
    ...MISSED_HEARTBEAT_PARAMETERS,
    graphIds: ["text[]", (abandoned: Abandoned) => abandoned.graphIds],
  },
  (sql) => `with silent as materialized (
    select r.* from threadloom.runs r
    where ${missesHeartbeats(sql)} and (r.lost_attempts + 1 >= ${sql.maxAttempts} or r.cancel_action is not null))
  select ${EXECUTED_COLUMNS} from silent r
  where r.graph_id = any(${sql.graphIds}) or not r.graph_id in (${HOSTED_GRAPHS})
  order by r.run_id`,
);

/**
 * Runs that must not be tried again. Ending a run needs its graph, so a process lists runs whose graph it
 * hosts or no live server hosts.
 */
export const listAbandoned = async (
  queryable: Queryable,
  abandoned: Abandoned,
): Promise<ExecutedRunRow[]> => {
  return openRuns(queryable, await LIST_ABANDONED.query<ExecutedRunRow>(queryable, abandoned));
};
