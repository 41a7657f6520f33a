import type { Queryable } from "../../../platform/database/database.ts";
import { THREAD_JSON } from "../../../platform/encryption/columns.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { ENDED_COLUMNS } from "../columns.ts";
import type { RunEnd, RunOutcome } from "../attempts.ts";
import { storedFinalValues } from "../final-values.ts";
import { recorded, type RecordEnds } from "./ended.ts";

/** An end with an error concerns a single thread. */
const storedError = ({ cipher }: Queryable, error: JsonObject, threadId: string | undefined): string =>
  THREAD_JSON.error.stored(cipher, JSON.stringify(error), { thread_id: threadId ?? "" });

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
    await transaction.query(DELETE_THREADS, [
      threadIds,
      status,
      error === null ? null : storedError(transaction, error, threadIds[0]),
      // PostgreSQL rejects parameters that the text does not use.
      ...(record === undefined
        ? []
        : [storedFinalValues(transaction.cipher, final?.values, threadIds[0]), final?.omitted ?? false]),
    ]);
  };
};
