import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import { OF_RUN, type RunSelector } from "../attempts.ts";

/** Index: runs_pkey. */
const ANNOUNCE_READER = statement(
  { ...OF_RUN, processId: "uuid" },
  (sql) => `update threadloom.runs set reader_id = case when reader_id is null or reader_id =
    ${sql.processId} then ${sql.processId}
    else '00000000-0000-0000-0000-000000000000' end
  where thread_id = ${sql.threadId} and run_id = ${sql.runId} and status in ('pending', 'running') and worker_id is distinct from ${sql.processId}
  returning run_id`,
);

/**
 * Sends the run's events to the event log, and keeps a threadless run for the reader. If two processes read
 * the run, stores the zero id: neither is the only reader. False if the run has ended, is gone, or is
 * executed by the reading process.
 */
export const announceReader = async (
  queryable: Queryable,
  run: RunSelector,
  processId: string,
): Promise<boolean> => {
  const rows = await ANNOUNCE_READER.query(queryable, { ...run, processId });
  return rows.length > 0;
};
