import type { Queryable } from "../../../platform/database/database.ts";
import type { AttemptSelector } from "../attempts.ts";

/** Index: runs_pkey. */
const NOTE_UNLOGGED = `update threadloom.runs set unlogged_attempt = attempt
  where thread_id = $1 and run_id = $2 and attempt = $3 and status = 'running'`;

/** Readers on other processes find this without a signal. */
export const noteUnlogged = async (
  queryable: Queryable,
  { threadId, runId, attempt }: AttemptSelector,
): Promise<void> => {
  await queryable.query(NOTE_UNLOGGED, [threadId, runId, attempt]);
};
