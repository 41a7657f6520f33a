import type { Queryable } from "../../../platform/database/database.ts";
import { encryptedParameter, statement } from "../../../platform/database/statement.ts";
import { ENDED_COLUMNS } from "../columns.ts";
import type { RunEnd, RunOutcome } from "../attempts.ts";
import { recorded, type RecordEnds } from "./ended.ts";

type End = Pick<RunEnd, "status" | "error"> & Pick<RunOutcome, "final">;
type Deletion = End & { threadIds: readonly string[] };

/** An end with an error or values concerns a single thread. */
const ofThread = ({ threadIds }: Deletion) => ({ thread_id: threadIds[0] ?? "" });

const PARAMETERS = {
  threadIds: "uuid[]",
  status: "text",
  error: encryptedParameter(
    "threads",
    "error",
    ({ error }: Deletion) => error && JSON.stringify(error),
    ofThread,
  ),
} as const;
const VALUES_PARAMETERS = {
  ...PARAMETERS,
  finalValues: encryptedParameter(
    "deliveries",
    "final_values",
    ({ final }: Deletion) => final?.values ?? null,
    ofThread,
  ),
  valuesOmitted: ["boolean", ({ final }: Deletion) => final?.omitted ?? false],
} as const;

const deletionText = (sql: Readonly<Record<keyof typeof PARAMETERS, string>>, recording: string): string =>
  `with ended as (
    select ${ENDED_COLUMNS}, ${sql.status} as status, ${sql.error} as error from threadloom.runs r
    where r.thread_id = any(${sql.threadIds}) and r.status in ('pending', 'running'))${recording}
  delete from threadloom.threads where thread_id = any(${sql.threadIds})`;

/**
 * Any status → the row is gone, with its thread; the fence rejects later writes of a running attempt. The
 * cascade follows the statement, so `ended` still sees the runs. Indexes: threads_pkey,
 * runs_pending_of_thread, runs_one_begun_per_thread.
 */
export const deletingThreads = (record: RecordEnds | undefined) => {
  const deletion =
    record === undefined
      ? statement(PARAMETERS, (sql) => deletionText(sql, ""))
      : statement(VALUES_PARAMETERS, (sql) => deletionText(sql, recorded(record, sql)));

  /** The caller holds the locks of the threads and of their unfinished runs. */
  return async (transaction: Queryable, threadIds: readonly string[], end: End): Promise<void> => {
    await deletion.query(transaction, { threadIds, ...end });
  };
};
