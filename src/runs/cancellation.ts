import type { Visibility } from "../access/visibility.ts";
import type { Database, Queryable } from "../database/database.ts";
import type { CancelAction, RunStatus } from "../database/tables.ts";
import { runNotFound } from "../lib/errors.ts";
import type { Announcements } from "./announcements.ts";
import type { RunSelector } from "../queue/attempts.ts";
import { advance } from "../queue/sql/advance.ts";
import { askToCancel } from "../queue/sql/ask-to-cancel.ts";
import { endWaiting } from "../queue/sql/end-waiting.ts";
import { forgetRuns } from "../queue/sql/forget.ts";
import { listNamed, unfinishedPages } from "../queue/sql/list-unfinished.ts";
import { lockThreads } from "../queue/sql/lock-threads.ts";
import { lockRuns, type LockedRunRow } from "../queue/sql/lock-unfinished.ts";
import { release } from "../queue/sql/release.ts";

export interface CancellationParts {
  database: Database;
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

/** Cancels runs: those in progress are asked to stop, those that wait are ended, or forgotten by a rollback. */
export const createCancellation = ({ database, announcements, checkpoints }: CancellationParts) => {
  const endAllWaiting = async (
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
    if (action === "rollback") {
      for (const run of others) {
        // Only one that was recovered from a dead worker has checkpoints.
        if (run.attempt > 0) await checkpoints.deleteRun(run.thread_id, run.run_id, transaction);
      }
      await forgetRuns(transaction, others);
    } else
      await endWaiting(
        transaction,
        others.map((run) => run.run_id),
      );
    // A run that waited behind one of them may be the next.
    await advance(transaction, await release(transaction, others));
  };

  /** Cancels what of these has not ended; answers how many are there. */
  const cancelBatch = async (
    visibility: Visibility<"threads">,
    selectors: readonly RunSelector[],
    action: CancelAction,
  ): Promise<number> => {
    const runs = await database.transaction(async (transaction) => {
      const threadIds = [...new Set(selectors.map((selector) => selector.threadId))];
      const visible = await lockThreads(transaction, visibility, threadIds);
      const runIds = selectors.map((selector) => selector.runId);
      const locked = await lockRuns(transaction, runIds, [...visible]);
      const are = (status: RunStatus) => locked.filter((run) => run.status === status);
      const running = are("running").map((run) => run.run_id);
      if (running.length > 0) await askToCancel(transaction, running, action);
      await endAllWaiting(transaction, are("pending"), action);
      return locked;
    });
    for (const run of runs) {
      if (run.status === "running") announcements.stop(run, action);
      if (run.status === "pending") announcements.ended(run, action);
    }
    return runs.length;
  };

  return {
    /** Throws `runNotFound`. Does nothing to a run that has ended. `visibility`: of what may be cancelled. */
    async cancel(
      visibility: Visibility<"threads">,
      selector: RunSelector,
      action: CancelAction,
    ): Promise<void> {
      if ((await cancelBatch(visibility, [selector], action)) === 0) throw runNotFound(selector.runId);
    },

    /** Answers how many runs were there to cancel. In batches, so that neither memory nor locks grow with them. */
    async cancelMany(
      visibility: Visibility<"threads">,
      { threadId, runIds, status }: UnfinishedFilter,
      action: CancelAction,
    ): Promise<number> {
      let found = 0;
      if (runIds !== undefined) {
        const statuses = status === "all" ? ["pending", "running"] : [status];
        const named = await listNamed(database, visibility, runIds, statuses);
        const meant = named.filter((run) => threadId === undefined || run.threadId === threadId);
        for (let start = 0; start < meant.length; start += RUNS_PER_BATCH) {
          found += await cancelBatch(visibility, meant.slice(start, start + RUNS_PER_BATCH), action);
        }
        return found;
      }
      // What waits first: the end of a run in progress would let the next one start.
      for (const each of ["pending", "running"] as const) {
        if (status !== "all" && status !== each) continue;
        const pages = unfinishedPages(database, visibility, each, threadId, RUNS_PER_BATCH);
        for await (const page of pages) found += await cancelBatch(visibility, page, action);
      }
      return found;
    },
  };
};

export type Cancellation = ReturnType<typeof createCancellation>;
