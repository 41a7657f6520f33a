import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { CancelAction } from "../../../platform/database/tables.ts";
import { OF_ATTEMPT, type AttemptSelector } from "../attempts.ts";

/** running → pending; locks the thread first. Indexes: threads_pkey, runs_pkey. */
const HAND_BACK = statement(
  OF_ATTEMPT,
  (sql) => `with thread as (
  select thread_id from threadloom.threads where thread_id = ${sql.threadId} for no key update),
handed_back as (
  update threadloom.runs r set status = 'pending', worker_id = null, lease_until = null, updated_at = now()
  from thread where r.thread_id = thread.thread_id and r.run_id = ${sql.runId} and r.attempt = ${sql.attempt} and r.status = 'running'
    and r.cancel_action is null
  returning r.thread_id)
update threadloom.threads t set turns = t.turns + 1 from handed_back h where t.thread_id = h.thread_id
returning t.turns`,
);

const ASKED_FOR = statement(
  OF_ATTEMPT,
  (sql) => `select cancel_action from threadloom.runs
  where thread_id = ${sql.threadId} and run_id = ${sql.runId} and attempt = ${sql.attempt} and status = 'running'`,
);

/**
 * If the run is to be cancelled, the attempt keeps the run, and this returns the action: no process would
 * cancel the run in the queue.
 */
export const handBack = async (
  queryable: Queryable,
  attempt: AttemptSelector,
): Promise<CancelAction | undefined> => {
  const handedBack = await HAND_BACK.query(queryable, attempt);
  if (handedBack.length > 0) return undefined;
  const kept = await ASKED_FOR.query<{ cancel_action: CancelAction | null }>(queryable, attempt);
  return kept[0]?.cancel_action ?? undefined;
};
