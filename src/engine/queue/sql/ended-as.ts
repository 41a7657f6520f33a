import type { Queryable } from "../../../platform/database/database.ts";
import type { RunStatus } from "../../../platform/database/tables.ts";
import type { AttemptSelector, RunOutcome } from "../attempts.ts";

/** Index: runs_pkey. */
const ENDED_AS = "select status, attempt from threadloom.runs where thread_id = $1 and run_id = $2";

/** `"gone"` if there is no row. */
export const endedAs = async (
  queryable: Queryable,
  { threadId, runId, attempt }: AttemptSelector,
  status: RunOutcome["status"],
): Promise<boolean | "gone"> => {
  const rows = await queryable.query<{ status: RunStatus; attempt: number }>(ENDED_AS, [threadId, runId]);
  return rows[0] === undefined ? "gone" : rows[0].status === status && rows[0].attempt === attempt;
};
