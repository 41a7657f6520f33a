import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import { ASSERT_WRITABLE } from "./assert-writable.ts";
import { isSome, laterRunIsDue } from "./find-waiting.ts";
import { missesHeartbeats, type MissedHeartbeats } from "./missed-heartbeats.ts";

/** Whether statements of a sweep may find something. */
export interface ToRecover {
  /** Runs whose holder is dead: for `requeue` and `listAbandoned`. */
  lost: boolean;
  /** Delayed runs that are due: for `putBehind`. */
  later: boolean;
  /** For `advanceForgotten`. */
  behind: boolean;
}

/** Indexes: see `missesHeartbeats`, runs_claimable, runs_behind. */
const FIND_TO_RECOVER = statement(
  { leaseSeconds: "float8", graphIds: "text[]" },
  (sql) => `with writable as (${ASSERT_WRITABLE})
  select ${isSome(`threadloom.runs r where ${missesHeartbeats(sql)}`, "r.thread_id")} as lost,
  ${laterRunIsDue(sql.graphIds)} as later,
  ${isSome("threadloom.runs r where r.status = 'pending' and r.behind", "r.thread_id")} as behind`,
);

/** Throws on a standby, where holders can't renew their leases. */
export const findToRecover = async (
  queryable: Queryable,
  missed: Pick<MissedHeartbeats, "leaseSeconds"> & { graphIds: readonly string[] },
): Promise<ToRecover> => {
  return (await FIND_TO_RECOVER.query<ToRecover>(queryable, missed))[0]!;
};
