import type { Queryable } from "../../../platform/database/database.ts";
import type { AttemptSelector } from "../attempts.ts";

/** Index: runs_pkey. */
const GIVE_UP_LEASE = `update threadloom.runs set lease_until = now()
  where thread_id = $1 and run_id = $2 and attempt = $3 and status = 'running'`;

/**
 * Ends an attempt's lease now. Recovery, of any process, finds the run as one whose worker died: the attempt counts as
 * lost, and a run that is to be cancelled, or has no attempts left, is ended. Handed back, it would go from process to
 * process for ever, and end each of them.
 */
export const giveUpLease = async (
  queryable: Queryable,
  { threadId, runId, attempt }: AttemptSelector,
): Promise<void> => {
  await queryable.query(GIVE_UP_LEASE, [threadId, runId, attempt]);
};
