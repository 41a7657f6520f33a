import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { EndedRun, RunRow } from "../../../platform/database/tables.ts";
import { ENDED_COLUMNS } from "../columns.ts";

export type UnfinishedRunRow = EndedRun & { status: "pending" | "running" };

type LockedRunRow = EndedRun & Pick<RunRow, "status" | "delete_thread">;

/** Indexes: runs_pending_of_thread, runs_one_begun_per_thread. */
const LOCK_UNFINISHED = statement(
  { threadId: "uuid" },
  (sql) => `select ${ENDED_COLUMNS}, r.status from threadloom.runs r
  where r.thread_id = ${sql.threadId} and r.status in ('pending', 'running') order by r.created_at, r.run_id for update`,
);

/** In the lock order of `renew`. Indexes: as above. */
const LOCK_UNFINISHED_OF = statement(
  { threadIds: "uuid[]" },
  (sql) => `select ${ENDED_COLUMNS} from threadloom.runs r
  where r.thread_id = any(${sql.threadIds}) and r.status in ('pending', 'running') order by r.run_id for update`,
);

/** Index: runs_pkey. */
const LOCK_RUNS = statement(
  { runIds: "uuid[]", threadIds: "uuid[]" },
  (sql) => `select ${ENDED_COLUMNS}, r.status, r.delete_thread from threadloom.runs r
  where r.run_id = any(${sql.runIds}) and r.thread_id = any(${sql.threadIds}) order by r.run_id for update`,
);

/**
 * In order of creation. The locks keep workers from claiming the runs; the caller holds the thread's lock.
 */
export const lockUnfinished = async (transaction: Queryable, threadId: string): Promise<UnfinishedRunRow[]> =>
  await LOCK_UNFINISHED.query<UnfinishedRunRow>(transaction, { threadId });

/** Ordered by run id. */
export const lockUnfinishedOf = async (
  transaction: Queryable,
  threadIds: readonly string[],
): Promise<EndedRun[]> =>
  threadIds.length === 0 ? [] : await LOCK_UNFINISHED_OF.query<EndedRun>(transaction, { threadIds });

/** The caller holds the threads' locks. */
export const lockRuns = async (
  transaction: Queryable,
  runIds: readonly string[],
  threadIds: readonly string[],
): Promise<LockedRunRow[]> => await LOCK_RUNS.query<LockedRunRow>(transaction, { runIds, threadIds });
