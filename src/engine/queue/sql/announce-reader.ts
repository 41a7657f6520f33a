import type { Queryable } from "../../../platform/database/database.ts";
import type { RunSelector } from "../attempts.ts";

/** Index: runs_pkey. */
const ANNOUNCE_READER = `update threadloom.runs set reader_id = case when reader_id is null or reader_id = $3 then $3
    else '00000000-0000-0000-0000-000000000000' end
  where thread_id = $1 and run_id = $2 and status in ('pending', 'running') and worker_id is distinct from $3
  returning run_id`;

/**
 * The run's events then go to the event log, and a threadless run stays until they are read. If two processes
 * read a pending run, the zero id is stored: either may execute the run, and neither is the only reader.
 * Returns false if the run has ended, is gone, or is executed by the reading process.
 */
export const announceReader = async (
  queryable: Queryable,
  { threadId, runId }: RunSelector,
  processId: string,
): Promise<boolean> => {
  const rows = await queryable.query(ANNOUNCE_READER, [threadId, runId, processId]);
  return rows.length > 0;
};
