import type { Database, Queryable } from "../database/database.ts";
import type { CancelAction, RunRow, RunStatus } from "../database/tables.ts";
import { runNotFound } from "../lib/errors.ts";
import type { Announcements } from "./announcements.ts";
import { advance } from "../queue/behind.ts";
import { forgetRun } from "../queue/forgetting.ts";
import { TOLD_COLUMNS, type LockedRunRow, type RunRepository, type RunSelector } from "./repository.ts";

export interface CancellationParts {
  database: Database;
  repository: RunRepository;
  announcements: Announcements;
  checkpoints: {
    deleteRun(threadId: string, runId: string, transaction: Queryable): Promise<void>;
  };
}

/** Which runs are meant, of those that have not ended: of one thread or of all, these or all of a status. */
export interface UnfinishedFilter {
  threadId?: string | undefined;
  runIds?: string[] | undefined;
  status: "pending" | "running" | "all";
}

/** What is cancelled in one transaction: 15 ms where it is all of one thread, so nobody waits long for its locks. */
const RUNS_PER_BATCH = 500;
const FIRST_ID = "00000000-0000-0000-0000-000000000000";

/*
 * Locks are taken in one order everywhere: threads by their ids, then runs by theirs. The renewal of leases, which
 * takes runs in this order too, can't wait for a cancellation that waits for it.
 */
const LOCK_RUNS = `select ${TOLD_COLUMNS}, status, delete_thread from threadloom.runs
  where run_id = any($1::uuid[]) and thread_id = any($2::uuid[]) order by run_id for update`;

const FORGET_PLAIN = `delete from threadloom.runs
  where run_id = any($1::uuid[]) and replaced_metadata is null and replaced_config is null returning run_id`;

const RELEASE = `update threadloom.threads t set unfinished_runs = t.unfinished_runs - ended.runs, updated_at = now(),
    expires_at = now() + t.ttl_minutes * interval '1 minute',
    status = case when t.unfinished_runs > ended.runs then 'busy' else t.resting_status end
  from unnest($1::uuid[], $2::int[]) as ended(thread_id, runs) where t.thread_id = ended.thread_id`;

const NAMED =
  "select run_id, thread_id from threadloom.runs where run_id = any($1::uuid[]) and status = any($2::text[])";

/** `created_at` as text: a Date would round it. */
type PageRow = Record<"thread_id" | "created_at" | "run_id", string>;

/**
 * Those after $1, $2, $3; what is created meanwhile is not meant, $4.
 * Indexes: runs_pending_of_thread and runs_one_running_per_thread.
 */
const pageStatement = (status: "pending" | "running", ofThread: boolean): string =>
  `select thread_id, created_at::text as created_at, run_id from threadloom.runs
   where status = '${status}' and (thread_id, created_at, run_id) > ($1::uuid, $2::timestamptz, $3::uuid)
     and created_at <= $4::timestamptz ${ofThread ? "and thread_id = $5::uuid" : ""}
   order by thread_id, runs.created_at, run_id limit ${RUNS_PER_BATCH}`;

/** Cancels runs: those in progress are asked to stop, those that wait are ended, or forgotten by a rollback. */
export const createCancellation = ({
  database,
  repository,
  announcements,
  checkpoints,
}: CancellationParts) => {
  /** As if they had never been; the caller holds the locks. */
  const forget = async (transaction: Queryable, runs: readonly LockedRunRow[]): Promise<void> => {
    for (const run of runs) {
      // Only one that was recovered from a dead worker has checkpoints.
      if (run.attempt > 0) await checkpoints.deleteRun(run.thread_id, run.run_id, transaction);
    }
    const runIds = runs.map((run) => run.run_id);
    const gone = await transaction.query<{ run_id: string }>(FORGET_PLAIN, [runIds]);
    const forgotten = new Set(gone.map((run) => run.run_id));
    for (const run of runs) {
      if (!forgotten.has(run.run_id)) await forgetRun(transaction, run.thread_id, run.run_id);
    }
  };

  const endWaiting = async (
    transaction: Queryable,
    runs: readonly LockedRunRow[],
    action: CancelAction,
  ): Promise<void> => {
    if (runs.length === 0) return;
    const withThread = runs.filter((run) => run.delete_thread);
    for (const run of withThread) {
      if (run.attempt > 0) await checkpoints.deleteRun(run.thread_id, run.run_id, transaction);
    }
    if (withThread.length > 0) {
      await transaction.query("delete from threadloom.threads where thread_id = any($1::uuid[])", [
        withThread.map((run) => run.thread_id),
      ]);
    }
    const others = runs.filter((run) => !run.delete_thread);
    if (others.length === 0) return;
    if (action === "rollback") await forget(transaction, others);
    else
      await repository.endPending(
        transaction,
        others.map((run) => run.run_id),
      );
    const ended = new Map<string, number>();
    for (const run of others) ended.set(run.thread_id, (ended.get(run.thread_id) ?? 0) + 1);
    await transaction.query(RELEASE, [[...ended.keys()], [...ended.values()]]);
    // A run that waited behind one of them may be the next.
    await advance(transaction, [...ended.keys()]);
  };

  /** Cancels what of these has not ended; answers how many are there. */
  const cancelBatch = async (selectors: readonly RunSelector[], action: CancelAction): Promise<number> => {
    const runs = await database.transaction(async (transaction) => {
      const threadIds = [...new Set(selectors.map((selector) => selector.threadId))];
      await repository.lockThreads(transaction, threadIds);
      const runIds = selectors.map((selector) => selector.runId);
      const locked = await transaction.query<LockedRunRow>(LOCK_RUNS, [runIds, threadIds]);
      const are = (status: RunStatus) => locked.filter((run) => run.status === status);
      const running = are("running").map((run) => run.run_id);
      if (running.length > 0) await repository.askToCancel(transaction, running, action);
      await endWaiting(transaction, are("pending"), action);
      return locked;
    });
    for (const run of runs) {
      if (run.status === "running") announcements.stop(run.run_id, action);
      if (run.status === "pending") announcements.ended(run, action);
    }
    return runs.length;
  };

  /** Runs of one status, from thread to thread, each once. */
  async function* pages(
    status: "pending" | "running",
    threadId: string | undefined,
  ): AsyncGenerator<RunSelector[]> {
    const [clock] = await database.query<{ now: string }>("select clock_timestamp()::text as now");
    let last: PageRow | undefined = { thread_id: FIRST_ID, created_at: "-infinity", run_id: FIRST_ID };
    while (last !== undefined) {
      const rows: PageRow[] = await database.query<PageRow>(pageStatement(status, threadId !== undefined), [
        last.thread_id,
        last.created_at,
        last.run_id,
        clock?.now,
        ...(threadId === undefined ? [] : [threadId]),
      ]);
      if (rows.length > 0) yield rows.map((row) => ({ threadId: row.thread_id, runId: row.run_id }));
      last = rows.length < RUNS_PER_BATCH ? undefined : rows.at(-1);
    }
  }

  return {
    /** Throws `runNotFound`. Does nothing to a run that has ended. */
    async cancel(selector: RunSelector, action: CancelAction): Promise<void> {
      if ((await cancelBatch([selector], action)) === 0) throw runNotFound(selector.runId);
    },

    /** Answers how many runs were there to cancel. In batches, so that neither memory nor locks grow with them. */
    async cancelMany({ threadId, runIds, status }: UnfinishedFilter, action: CancelAction): Promise<number> {
      let found = 0;
      if (runIds !== undefined) {
        const rows = await database.query<Pick<RunRow, "run_id" | "thread_id">>(NAMED, [
          runIds,
          status === "all" ? ["pending", "running"] : [status],
        ]);
        const meant = rows.filter((row) => threadId === undefined || row.thread_id === threadId);
        for (let start = 0; start < meant.length; start += RUNS_PER_BATCH) {
          const batch = meant.slice(start, start + RUNS_PER_BATCH);
          found += await cancelBatch(
            batch.map((row) => ({ threadId: row.thread_id, runId: row.run_id })),
            action,
          );
        }
        return found;
      }
      // What waits first: the end of a run in progress would let the next one start.
      for (const each of ["pending", "running"] as const) {
        if (status !== "all" && status !== each) continue;
        for await (const page of pages(each, threadId)) found += await cancelBatch(page, action);
      }
      return found;
    },
  };
};

export type Cancellation = ReturnType<typeof createCancellation>;
