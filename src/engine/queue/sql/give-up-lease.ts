import type { Queryable } from "../../../platform/database/database.ts";
import type { AttemptSelector } from "../attempts.ts";

/** Index: runs_pkey. */
const GIVE_UP_LEASE = `update threadloom.runs set lease_until = now()
  where thread_id = $1 and run_id = $2 and attempt = $3 and status = 'running'`;

/**
 * Lets the recovery of any process count the attempt as lost. Handing the run back instead would move a run
 * that kills its process from process to process without end.
 */
export const giveUpLease = async (
  queryable: Queryable,
  { threadId, runId, attempt }: AttemptSelector,
): Promise<void> => {
  await queryable.query(GIVE_UP_LEASE, [threadId, runId, attempt]);
};
