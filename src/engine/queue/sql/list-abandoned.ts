import type { Queryable } from "../../../platform/database/database.ts";
import { nameParameters } from "../../../platform/database/named-parameters.ts";
import type { ExecutedRunRow } from "../../../platform/database/tables.ts";
import { EXECUTED_COLUMNS, openRuns } from "../columns.ts";
import { HOSTED_GRAPHS } from "../hosting.ts";
import { missesHeartbeats, MISSED_HEARTBEAT_PARAMETERS, type MissedHeartbeats } from "./missed-heartbeats.ts";

interface Abandoned extends MissedHeartbeats {
  /** The graphs that this process hosts. */
  graphIds: readonly string[];
}

/**
 * Index: see `missesHeartbeats`. Silent runs come first: `workers` is read whole, and beside the cost of that in a session without sequential
 * scans PostgreSQL 17 and older take all runs in the order of their ids for as cheap.
 */
const listStatement = (seesDeaths: boolean) =>
  nameParameters(
    {
      ...MISSED_HEARTBEAT_PARAMETERS,
      graphIds: ["text[]", (abandoned: Abandoned) => abandoned.graphIds],
    },
    (sql) => `with silent as materialized (
    select r.* from threadloom.runs r
    where ${missesHeartbeats(sql, seesDeaths)} and (r.lost_attempts + 1 >= ${sql.maxAttempts} or r.cancel_action is not null))
  select ${EXECUTED_COLUMNS} from silent r
  where r.graph_id = any(${sql.graphIds}) or not r.graph_id in (${HOSTED_GRAPHS})
  order by r.run_id`,
  );

const LIST_ABANDONED = listStatement(true);
const LIST_ABANDONED_BY_LEASE = listStatement(false);

/**
 * Runs whose holder went silent and that must not be tried again. Where an end leaves the thread only the run's
 * graph can tell, so this is left to who hosts it, if any worker that lives does.
 */
export const listAbandoned = async (
  queryable: Queryable,
  abandoned: Abandoned,
): Promise<ExecutedRunRow[]> => {
  const statement = abandoned.seesDeaths ? LIST_ABANDONED : LIST_ABANDONED_BY_LEASE;
  return openRuns(queryable, await statement.query<ExecutedRunRow>(queryable, abandoned));
};
