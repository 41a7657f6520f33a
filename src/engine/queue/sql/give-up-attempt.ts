import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { RunRow } from "../../../platform/database/tables.ts";
import { OF_ATTEMPT, type AttemptSelector } from "../attempts.ts";

/**
 * running → pending; locks the thread first. Indexes: threads_pkey, runs_pkey. With 20,000 running runs: 25
 * buffers, 0.14 ms.
 */
const GIVE_UP = statement(
  { ...OF_ATTEMPT, maxAttempts: "integer" },
  (sql) => `with thread as (
  select thread_id from threadloom.threads where thread_id = ${sql.threadId} for no key update),
given_up as (
  update threadloom.runs r set status = 'pending', worker_id = null, lease_until = null, updated_at = now(),
    lost_attempts = r.lost_attempts + 1
  from thread where r.thread_id = thread.thread_id and r.run_id = ${sql.runId} and r.attempt = ${sql.attempt} and r.status = 'running'
    and r.lost_attempts + 1 < ${sql.maxAttempts} and r.cancel_action is null
  returning r.thread_id)
update threadloom.threads t set turns = t.turns + 1 from given_up g where t.thread_id = g.thread_id
returning t.turns`,
);

/** Index: runs_one_begun_per_thread, 3 buffers. */
const KEPT = statement(
  OF_ATTEMPT,
  (sql) => `select cancel_action, lost_attempts from threadloom.runs
  where thread_id = ${sql.threadId} and run_id = ${sql.runId} and attempt = ${sql.attempt} and status = 'running'`,
);

type KeptRunRow = Pick<RunRow, "cancel_action" | "lost_attempts">;

/**
 * Requeues the run of a lost attempt before the lease ends. If the run is to be cancelled or has no attempts
 * left, returns its row: the caller has to end it.
 */
export const giveUpAttempt = async (
  queryable: Queryable,
  attempt: AttemptSelector,
  maxAttempts: number,
): Promise<KeptRunRow | undefined> => {
  const givenUp = await GIVE_UP.query(queryable, { ...attempt, maxAttempts });
  if (givenUp.length > 0) return undefined;
  const [kept] = await KEPT.query<KeptRunRow>(queryable, attempt);
  return kept;
};
