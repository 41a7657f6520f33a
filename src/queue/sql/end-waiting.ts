import type { Queryable } from "../../database/database.ts";

/** pending → interrupted. Index: runs_pkey. */
const END_WAITING =
  "update threadloom.runs set status = 'interrupted', updated_at = now() where run_id = any($1::uuid[])";

/** Ends runs that wait; the caller holds their locks, and counts the runs of their threads. */
export const endWaiting = async (transaction: Queryable, runIds: readonly string[]): Promise<void> => {
  await transaction.query(END_WAITING, [runIds]);
};
