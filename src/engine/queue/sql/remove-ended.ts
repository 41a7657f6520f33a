import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import { OF_RUN, type RunSelector } from "../attempts.ts";

/** Indexes: runs_pkey, run_events_pkey. */
const REMOVE_ENDED = statement(
  OF_RUN,
  (sql) => `with removed as (
  delete from threadloom.runs
  where thread_id = ${sql.threadId} and run_id = ${sql.runId} and status not in ('pending', 'running') returning thread_id, run_id)
delete from threadloom.run_events e using removed r where e.thread_id = r.thread_id and e.run_id = r.run_id`,
);

/** Does nothing if the run is unfinished. */
export const removeEnded = async (queryable: Queryable, run: RunSelector): Promise<void> => {
  await REMOVE_ENDED.query(queryable, run);
};
