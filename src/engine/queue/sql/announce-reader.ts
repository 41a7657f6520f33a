import type { Queryable } from "../../../platform/database/database.ts";
import type { RunSelector } from "../attempts.ts";

/** Index: runs_pkey. */
const ANNOUNCE_READER = `update threadloom.runs set reader_id = case when reader_id is null or reader_id = $3 then $3
    else '00000000-0000-0000-0000-000000000000' end
  where thread_id = $1 and run_id = $2 and status in ('pending', 'running') and worker_id is distinct from $3
  returning run_id`;

/**
 * Notes that a process reads a run that another one executes or may come to execute, so that its events go to
 * the event log, and a threadless run stays until they are read. Of two processes that read a pending run either
 * may come to execute it, so then no process stands there that could take itself for the only reader. False if the run
 * has ended, is gone, or is executed by the reading process itself.
 */
export const announceReader = async (
  queryable: Queryable,
  { threadId, runId }: RunSelector,
  processId: string,
): Promise<boolean> => {
  const rows = await queryable.query(ANNOUNCE_READER, [threadId, runId, processId]);
  return rows.length > 0;
};
