import type { Queryable } from "../../../platform/database/database.ts";
import type { CancelAction } from "../../../platform/database/tables.ts";
import type { AttemptSelector } from "../attempts.ts";

/** running → pending; locks the thread first. Indexes: threads_pkey, runs_pkey. */
const HAND_BACK = `with thread as (
  select thread_id from threadloom.threads where thread_id = $1 for no key update),
handed_back as (
  update threadloom.runs r set status = 'pending', worker_id = null, lease_until = null, updated_at = now()
  from thread where r.thread_id = thread.thread_id and r.run_id = $2 and r.attempt = $3 and r.status = 'running'
    and r.cancel_action is null
  returning r.thread_id)
update threadloom.threads t set turns = t.turns + 1 from handed_back h where t.thread_id = h.thread_id
returning t.turns`;

const ASKED_FOR = `select cancel_action from threadloom.runs
  where thread_id = $1 and run_id = $2 and attempt = $3 and status = 'running'`;

/**
 * If the run is to be cancelled, the attempt keeps it, because no process cancels a queued run for it;
 * returns the requested action.
 */
export const handBack = async (
  queryable: Queryable,
  { threadId, runId, attempt }: AttemptSelector,
): Promise<CancelAction | undefined> => {
  const handedBack = await queryable.query(HAND_BACK, [threadId, runId, attempt]);
  if (handedBack.length > 0) return undefined;
  const kept = await queryable.query<{ cancel_action: CancelAction | null }>(ASKED_FOR, [
    threadId,
    runId,
    attempt,
  ]);
  return kept[0]?.cancel_action ?? undefined;
};
