import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { RunStatus } from "../../../platform/database/tables.ts";
import { OF_RUN, type AttemptSelector, type RunOutcome } from "../attempts.ts";

/** Index: runs_pkey. */
const ENDED_AS = statement(
  OF_RUN,
  (sql) =>
    `select status, attempt from threadloom.runs where thread_id = ${sql.threadId} and run_id = ${sql.runId}`,
);

/** `"gone"` if there is no row. */
export const endedAs = async (
  queryable: Queryable,
  attempt: AttemptSelector,
  status: RunOutcome["status"],
): Promise<boolean | "gone"> => {
  const rows = await ENDED_AS.query<{ status: RunStatus; attempt: number }>(queryable, attempt);
  return rows[0] === undefined ? "gone" : rows[0].status === status && rows[0].attempt === attempt.attempt;
};
