import type { Queryable } from "../../database/database.ts";
import { ENDED_COLUMNS } from "../columns.ts";
import { recorded, type RecordEnds } from "./ended.ts";

/** pending → interrupted. Index: runs_pkey. */
export const endingWaiting = (record: RecordEnds | undefined) => {
  const END_WAITING = `with ended as (
    update threadloom.runs r set status = 'interrupted', updated_at = now() where r.run_id = any($1::uuid[])
    returning ${ENDED_COLUMNS}, r.status, r.error)${recorded(record)}
  select count(*) from ended`;

  /** Ends runs that wait; the caller holds their locks, and counts the runs of their threads. */
  return async (transaction: Queryable, runIds: readonly string[]): Promise<void> => {
    await transaction.query(END_WAITING, [runIds]);
  };
};
