import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import { OF_ATTEMPT, type AttemptSelector } from "../attempts.ts";

/** Index: runs_pkey. */
const NOTE_UNLOGGED = statement(
  OF_ATTEMPT,
  (sql) => `update threadloom.runs set unlogged_attempt = attempt
  where thread_id = ${sql.threadId} and run_id = ${sql.runId} and attempt = ${sql.attempt} and status = 'running'`,
);

/** For readers in other processes that no signal reaches. */
export const noteUnlogged = async (queryable: Queryable, attempt: AttemptSelector): Promise<void> => {
  await NOTE_UNLOGGED.query(queryable, attempt);
};
