import type { Queryable } from "../../database/database.ts";
import type { RunStatus } from "../../database/tables.ts";
import type { AttemptSelector, RunOutcome } from "../attempts.ts";

/** Index: runs_pkey. */
const ENDED_AS = "select status, attempt from threadloom.runs where run_id = $1";

/** Whether the run's row says that this attempt ended it so; `"gone"` if there is no row. */
export const endedAs = async (
  queryable: Queryable,
  { runId, attempt }: AttemptSelector,
  status: RunOutcome["status"],
): Promise<boolean | "gone"> => {
  const rows = await queryable.query<{ status: RunStatus; attempt: number }>(ENDED_AS, [runId]);
  return rows[0] === undefined ? "gone" : rows[0].status === status && rows[0].attempt === attempt;
};
