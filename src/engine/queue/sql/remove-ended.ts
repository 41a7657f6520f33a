import type { Queryable } from "../../../platform/database/database.ts";
import type { RunSelector } from "../attempts.ts";

/** Indexes: runs_pkey, run_events_pkey. */
const REMOVE_ENDED = `with removed as (
  delete from threadloom.runs
  where thread_id = $1 and run_id = $2 and status not in ('pending', 'running') returning thread_id, run_id)
delete from threadloom.run_events e using removed r where e.thread_id = r.thread_id and e.run_id = r.run_id`;

/** Leaves an unfinished run alone. */
export const removeEnded = async (queryable: Queryable, { threadId, runId }: RunSelector): Promise<void> => {
  await queryable.query(REMOVE_ENDED, [threadId, runId]);
};
