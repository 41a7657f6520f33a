import type { Queryable } from "../../database/database.ts";

/** Index: runs_pkey. */
const REMOVE_ENDED = "delete from threadloom.runs where run_id = $1 and status not in ('pending', 'running')";

/** Removes the record of a run that has ended. Does nothing to one that has not. */
export const removeEnded = async (queryable: Queryable, runId: string): Promise<void> => {
  await queryable.query(REMOVE_ENDED, [runId]);
};
