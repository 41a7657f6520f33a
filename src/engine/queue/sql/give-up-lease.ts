import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import { OF_ATTEMPT, type AttemptSelector } from "../attempts.ts";

/** Index: runs_pkey. */
const GIVE_UP_LEASE = statement(
  OF_ATTEMPT,
  (sql) => `update threadloom.runs set lease_until = now()
  where thread_id = ${sql.threadId} and run_id = ${sql.runId} and attempt = ${sql.attempt} and status = 'running'`,
);

/**
 * Lets recovery count the attempt as lost. With `handBack`, a run that kills its process would go from
 * process to process without end.
 */
export const giveUpLease = async (queryable: Queryable, attempt: AttemptSelector): Promise<void> => {
  await GIVE_UP_LEASE.query(queryable, attempt);
};
