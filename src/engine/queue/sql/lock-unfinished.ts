import type { Queryable } from "../../../platform/database/database.ts";
import type { EndedRun, RunRow } from "../../../platform/database/tables.ts";
import { ENDED_COLUMNS } from "../columns.ts";

export type UnfinishedRunRow = EndedRun & { status: "pending" | "running" };

export type LockedRunRow = EndedRun & Pick<RunRow, "status" | "delete_thread">;

/** Indexes: runs_pending_of_thread, runs_one_running_per_thread. */
const LOCK_UNFINISHED = `select ${ENDED_COLUMNS}, r.status from threadloom.runs r
  where r.thread_id = $1 and r.status in ('pending', 'running') order by r.created_at, r.run_id for update`;

/** In the lock order of `renew`. The same indexes. */
const LOCK_UNFINISHED_OF = `select ${ENDED_COLUMNS} from threadloom.runs r
  where r.thread_id = any($1::uuid[]) and r.status in ('pending', 'running') order by r.run_id for update`;

/** Index: runs_pkey. */
const LOCK_RUNS = `select ${ENDED_COLUMNS}, r.status, r.delete_thread from threadloom.runs r
  where r.run_id = any($1::uuid[]) and r.thread_id = any($2::uuid[]) order by r.run_id for update`;

/** In order of creation, locked so that no worker can claim one. The caller holds the thread's lock. */
export const lockUnfinished = async (transaction: Queryable, threadId: string): Promise<UnfinishedRunRow[]> =>
  await transaction.query<UnfinishedRunRow>(LOCK_UNFINISHED, [threadId]);

/** Ordered by run id. */
export const lockUnfinishedOf = async (
  transaction: Queryable,
  threadIds: readonly string[],
): Promise<EndedRun[]> =>
  threadIds.length === 0 ? [] : await transaction.query<EndedRun>(LOCK_UNFINISHED_OF, [threadIds]);

/** The caller holds the threads' locks. */
export const lockRuns = async (
  transaction: Queryable,
  runIds: readonly string[],
  threadIds: readonly string[],
): Promise<LockedRunRow[]> => await transaction.query<LockedRunRow>(LOCK_RUNS, [runIds, threadIds]);
