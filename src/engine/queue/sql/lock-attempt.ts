import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import { OF_ATTEMPT, type AttemptSelector } from "../attempts.ts";

/** Index: runs_pkey. */
const LOCK_ATTEMPT = statement(
  OF_ATTEMPT,
  (sql) => `select reader_id from threadloom.runs
  where thread_id = ${sql.threadId} and run_id = ${sql.runId} and attempt = ${sql.attempt} and status = 'running' for update`,
);

/**
 * The fencing check; undefined if the attempt no longer holds the run. The caller holds the thread's lock.
 */
export const lockAttempt = async (
  transaction: Queryable,
  attempt: AttemptSelector,
): Promise<{ readerId: string | null } | undefined> => {
  const rows = await LOCK_ATTEMPT.query<{ reader_id: string | null }>(transaction, attempt);
  return rows[0] && { readerId: rows[0].reader_id };
};
