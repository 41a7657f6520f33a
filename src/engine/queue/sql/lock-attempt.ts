import type { Queryable } from "../../../platform/database/database.ts";
import type { AttemptSelector } from "../attempts.ts";

/** Index: runs_pkey. */
const LOCK_ATTEMPT = `select reader_id from threadloom.runs
  where thread_id = $1 and run_id = $2 and attempt = $3 and status = 'running' for update`;

/**
 * The fencing check; undefined if the attempt no longer holds the run. The caller holds the thread's lock.
 */
export const lockAttempt = async (
  transaction: Queryable,
  { threadId, runId, attempt }: AttemptSelector,
): Promise<{ readerId: string | null } | undefined> => {
  const rows = await transaction.query<{ reader_id: string | null }>(LOCK_ATTEMPT, [
    threadId,
    runId,
    attempt,
  ]);
  return rows[0] && { readerId: rows[0].reader_id };
};
