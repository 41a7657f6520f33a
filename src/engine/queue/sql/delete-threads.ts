import type { Queryable } from "../../../platform/database/database.ts";
import { ENDED_COLUMNS } from "../columns.ts";
import type { RunEnd, RunOutcome } from "../attempts.ts";
import { recorded, type RecordEnds } from "./ended.ts";

const FINAL_VALUES = { finalValues: "$4::bytea", valuesOmitted: "$5::boolean" };

/**
 * Any status → the row is gone, with its thread. The cascade follows the statement, so `ended` still sees the
 * runs. A running run loses its lease, so later writes of its attempt are rejected. Indexes: threads_pkey,
 * runs_pending_of_thread, runs_one_running_per_thread.
 */
export const deletingThreads = (record: RecordEnds | undefined) => {
  const DELETE_THREADS = `with ended as (
    select ${ENDED_COLUMNS}, $2::text as status, $3::jsonb as error from threadloom.runs r
    where r.thread_id = any($1::uuid[]) and r.status in ('pending', 'running'))${recorded(record, FINAL_VALUES)}
  delete from threadloom.threads where thread_id = any($1::uuid[])`;

  /** The caller holds the locks of the threads and of their unfinished runs. */
  return async (
    transaction: Queryable,
    threadIds: readonly string[],
    { status, error, final }: Pick<RunEnd, "status" | "error"> & Pick<RunOutcome, "final">,
  ): Promise<void> => {
    const { encryption } = transaction;
    // An end with an error or values concerns a single thread.
    const key = { thread_id: threadIds[0] ?? "" };
    await transaction.query(DELETE_THREADS, [
      threadIds,
      status,
      encryption.stored("threads", "error", error && JSON.stringify(error), key),
      // PostgreSQL rejects parameters that the text does not use.
      ...(record === undefined
        ? []
        : [
            encryption.stored("webhook_deliveries", "final_values", final?.values ?? null, key),
            final?.omitted ?? false,
          ]),
    ]);
  };
};
