import type { Database, Queryable } from "../../platform/database/database.ts";
import type { CancelAction, CancelReason, EndedRun } from "../../platform/database/tables.ts";
import type { AttemptSelector, RunEnd, RunOutcome } from "./attempts.ts";
import { advance } from "./sql/advance.ts";
import { deletingThreads } from "./sql/delete-threads.ts";
import type { RecordEnds } from "./sql/ended.ts";
import { endingWaiting, numberEnds } from "./sql/end-waiting.ts";
import { finishing } from "./sql/finish.ts";
import { forgetting } from "./sql/forget.ts";
import { lockAttempt } from "./sql/lock-attempt.ts";
import { lockThread } from "./sql/lock-threads.ts";
import { lockUnfinishedOf } from "./sql/lock-unfinished.ts";
import { release } from "./sql/release.ts";

export interface RunEndsParts {
  /** What a run has written to the state of its thread, and what the thread holds. */
  checkpoints: {
    deleteRun(threadId: string, runId: string, transaction: Queryable): Promise<void>;
    deleteThread(threadId: string, transaction: Queryable): Promise<void>;
  };
  /** See sql/ended.ts; nothing is stored if left out. */
  recordEnds?: RecordEnds | undefined;
}

/** A run that waits, locked with its thread. */
type WaitingRun = EndedRun & { delete_thread?: boolean };

/** How a run ends that was cancelled before an attempt could say more. */
const cancelled = (action: CancelAction): Pick<RunEnd, "status" | "error"> => ({
  status: action === "rollback" ? "rolled-back" : "interrupted",
  error: null,
});

/**
 * Every way in which a run ends. There is no other: whatever ends a run asks for it here, and each statement behind this
 * stores with the end what is to be told of it (sql/ended.ts). Telling who waits right now, once the transaction is
 * committed, is for engine/endings.ts.
 */
export const createRunEnds = (database: Database, { checkpoints, recordEnds }: RunEndsParts) => {
  const finishRun = finishing(recordEnds);
  const endWaiting = endingWaiting(recordEnds);
  const deleteThreads = deletingThreads(recordEnds);
  const { forgetRun, forgetRuns } = forgetting(recordEnds);

  /** Of runs on threads that stay; the caller counts the runs of those threads. */
  const withdraw = async (
    transaction: Queryable,
    runs: readonly WaitingRun[],
    action: CancelAction,
    reason: CancelReason,
  ): Promise<RunEnd[]> => {
    if (runs.length === 0) return [];
    let turns: ReadonlyMap<string, number> | undefined;
    if (action === "rollback") {
      turns = await numberEnds(
        transaction,
        runs.map((run) => run.run_id),
      );
      for (const run of runs) {
        // Only one that was recovered from a dead worker has checkpoints.
        if (run.attempt > 0) await checkpoints.deleteRun(run.thread_id, run.run_id, transaction);
      }
      await forgetRuns(transaction, runs);
    } else
      await endWaiting(
        transaction,
        runs.map((run) => run.run_id),
        reason,
      );
    return runs.map((run) => ({ run, ...cancelled(action), turn: turns?.get(run.run_id) }));
  };

  return {
    /** An attempt came to its end. See sql/finish.ts. */
    finish: (
      attempt: AttemptSelector,
      outcome: RunOutcome,
      lastCheckpoint?: { checkpointNs: string; checkpointId: string },
    ): Promise<{ waiting: number } | undefined> => finishRun(database, { attempt, outcome, lastCheckpoint }),

    /**
     * An attempt was rolled back: the run and all it did are gone, the thread is what it was before.
     * False, and nothing is changed, if the attempt no longer holds the run.
     */
    async rollBack(attempt: AttemptSelector): Promise<boolean> {
      const { threadId, runId } = attempt;
      return await database.transaction(async (transaction) => {
        await lockThread(transaction, threadId);
        if ((await lockAttempt(transaction, attempt)) === undefined) return false;
        await checkpoints.deleteRun(threadId, runId, transaction);
        await forgetRun(transaction, threadId, runId);
        await release(transaction, [{ thread_id: threadId }]);
        return true;
      });
    },

    /**
     * The attempt of a threadless run came to its end (or was rolled back: `outcome` undefined). It leaves nothing behind.
     * The outcome is stored instead if another process than `readerHere` reads the run, and the sweep removes it later:
     * whoever waits there would find neither events nor a result. Undefined if the run is not the attempt's.
     */
    async finishWithThread(
      attempt: AttemptSelector,
      outcome: RunOutcome | undefined,
      readerHere: string,
    ): Promise<{ waiting: number } | undefined> {
      const { threadId } = attempt;
      return await database.transaction(async (transaction) => {
        await lockThread(transaction, threadId, { forDeletion: true });
        const held = await lockAttempt(transaction, attempt);
        if (held === undefined) return undefined;
        if (outcome !== undefined && held.readerId !== null && held.readerId !== readerHere) {
          return await finishRun(transaction, { attempt, outcome, lastCheckpoint: undefined });
        }
        await checkpoints.deleteThread(threadId, transaction);
        await deleteThreads(transaction, [threadId], outcome ?? cancelled("rollback"));
        return { waiting: 0 };
      });
    },

    /** Runs that wait were cancelled; the caller holds their locks and those of their threads. */
    async cancelWaiting(
      transaction: Queryable,
      runs: readonly WaitingRun[],
      action: CancelAction,
      reason: CancelReason,
    ): Promise<RunEnd[]> {
      const withThread = runs.filter((run) => run.delete_thread);
      for (const run of withThread) {
        if (run.attempt > 0) await checkpoints.deleteRun(run.thread_id, run.run_id, transaction);
      }
      if (withThread.length > 0) {
        const threadIds = withThread.map((run) => run.thread_id);
        await deleteThreads(transaction, threadIds, cancelled(action));
      }
      const others = runs.filter((run) => !run.delete_thread);
      const ends = await withdraw(transaction, others, action, reason);
      // A run that waited behind one of them may be the next.
      if (others.length > 0) await advance(transaction, await release(transaction, others));
      return [...withThread.map((run) => ({ run, ...cancelled(action) })), ...ends];
    },

    /**
     * Runs that wait make room for a new one of their thread; the caller holds the locks. It counts the new run in their
     * place (sql/create-behind-others.ts).
     */
    replaceWaiting: withdraw,

    /** Threads are deleted with whatever runs they have; the caller holds the threads' locks, for deletion. */
    async deleteThreads(transaction: Queryable, threadIds: readonly string[]): Promise<RunEnd[]> {
      const runs = await lockUnfinishedOf(transaction, threadIds);
      await deleteThreads(transaction, threadIds, { status: "deleted", error: null });
      for (const threadId of threadIds) await checkpoints.deleteThread(threadId, transaction);
      return runs.map((run) => ({ run, status: "deleted", error: null }));
    },
  };
};

export type RunEnds = ReturnType<typeof createRunEnds>;
