import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { CancelAction, RunRow } from "../../../platform/database/tables.ts";
import { OF_ATTEMPT, type AttemptSelector } from "../attempts.ts";

/* An attempt that this process gives back. */

/**
 * running → pending; locks the thread first. `maxAttempts` null: the attempt does not count as lost. Indexes: threads_pkey,
 * runs_pkey. With 20,000 running runs: 25 buffers, 0.14 ms.
 */
const REQUEUE_ATTEMPT = statement(
  { ...OF_ATTEMPT, maxAttempts: "integer" },
  (sql) => `with thread as (
  select thread_id from threadloom.threads where thread_id = ${sql.threadId} for no key update),
requeued as (
  update threadloom.runs r set status = 'pending', worker_id = null, lease_until = null, updated_at = now(),
    lost_attempts = r.lost_attempts + case when ${sql.maxAttempts} is null then 0 else 1 end
  from thread where r.thread_id = thread.thread_id and r.run_id = ${sql.runId} and r.attempt = ${sql.attempt} and r.status = 'running'
    and (${sql.maxAttempts} is null or r.lost_attempts + 1 < ${sql.maxAttempts}) and r.cancel_action is null
  returning r.thread_id)
update threadloom.threads t set turns = t.turns + 1 from requeued q where t.thread_id = q.thread_id
returning t.turns`,
);

/** Index: runs_one_begun_per_thread, 3 buffers. */
const KEPT = statement(
  OF_ATTEMPT,
  (sql) => `select cancel_action, lost_attempts from threadloom.runs
  where thread_id = ${sql.threadId} and run_id = ${sql.runId} and attempt = ${sql.attempt} and status = 'running'`,
);

type KeptRunRow = Pick<RunRow, "cancel_action" | "lost_attempts">;

const requeueAttempt = async (
  queryable: Queryable,
  attempt: AttemptSelector,
  maxAttempts: number | null,
): Promise<KeptRunRow | undefined> => {
  const requeued = await REQUEUE_ATTEMPT.query(queryable, { ...attempt, maxAttempts });
  if (requeued.length > 0) return undefined;
  return (await KEPT.query<KeptRunRow>(queryable, attempt))[0];
};

/**
 * Requeues the run of a lost attempt before the lease ends. If the run is to be cancelled or has no attempts
 * left, returns its row: the caller has to end it.
 */
export const giveUpAttempt: (
  queryable: Queryable,
  attempt: AttemptSelector,
  maxAttempts: number,
) => Promise<KeptRunRow | undefined> = requeueAttempt;

/**
 * If the run is to be cancelled, the attempt keeps the run, and this returns the action: no process would
 * cancel the run in the queue.
 */
export const handBack = async (
  queryable: Queryable,
  attempt: AttemptSelector,
): Promise<CancelAction | undefined> =>
  (await requeueAttempt(queryable, attempt, null))?.cancel_action ?? undefined;

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
