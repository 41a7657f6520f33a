import type { Queryable } from "../database/database.ts";

/**
 * Takes one run out of its thread's story. What creating it replaced of the thread's metadata comes back, if they still
 * are as that left them; or the next run takes it over, for whom that was how it found the thread.
 * Index: runs_by_thread.
 */
const FORGET = `with forgotten as (
  delete from runs where run_id = $2 and thread_id = $1
  returning run_id, created_at, graph_id, assistant_id, replaced_metadata,
    jsonb_build_object('graph_id', graph_id, 'assistant_id', assistant_id) as own),
next as (
  select r.run_id from runs r, forgotten f
  where r.thread_id = $1 and (r.created_at, r.run_id) > (f.created_at, f.run_id)
  order by r.created_at, r.run_id limit 1),
taken_over as (
  update runs r set replaced_metadata = f.replaced_metadata
  from forgotten f, next n
  where r.run_id = n.run_id and f.replaced_metadata is not null and (r.replaced_metadata = f.own
    or (r.replaced_metadata is null and r.graph_id = f.graph_id and r.assistant_id = f.assistant_id)))
update threads t set metadata = t.metadata - array['graph_id', 'assistant_id'] || f.replaced_metadata
from forgotten f
where t.thread_id = $1 and t.metadata @> f.own and f.replaced_metadata is not null
  and not exists (select from next)`;

/** Removes a run as if it had never been created; the caller holds the lock on the thread, and counts its runs. */
export const forgetRun = async (transaction: Queryable, threadId: string, runId: string): Promise<void> => {
  await transaction.query(FORGET, [threadId, runId]);
};
