import type { Database, Queryable } from "../../platform/database/database.ts";
import type { CheckpointStorage } from "../../state/checkpoints/types.ts";
import type { CancelAction, CancelReason, EndedRun } from "../../platform/database/tables.ts";
import type { AttemptSelector, RunEnd, RunOutcome } from "./attempts.ts";
import { advance } from "./sql/advance.ts";
import { deletingThreads } from "./sql/delete-threads.ts";
import type { RecordEnds, RecordPushes } from "./sql/ended.ts";
import { endingWaiting, numberEnds } from "./sql/end-waiting.ts";
import { finishing, type Finished } from "./sql/finish.ts";
import { forgetting } from "./sql/forget.ts";
import { lockAttempt } from "./sql/lock-attempt.ts";
import { lockThread } from "./sql/lock-threads.ts";
import { lockUnfinishedOf } from "./sql/lock-unfinished.ts";
import { release } from "./sql/release.ts";
import { storeAttemptRecords } from "./sql/store-records.ts";

/** A pending run, locked with its thread. */
type WaitingRun = EndedRun & { delete_thread?: boolean };

const cancelled = (action: CancelAction): Pick<RunEnd, "status" | "error"> => ({
  status: action === "rollback" ? "rolled-back" : "interrupted",
  error: null,
});

/**
 * The only module that ends runs. Each statement also stores the deliveries of the end (sql/ended.ts), unless
 * `recordEnds` is undefined.
 */
export const createRunEnds = (
  database: Database,
  checkpoints: Pick<CheckpointStorage, "deleteRun" | "deleteThread">,
  recordEnds?: RecordEnds,
  recordPushes?: RecordPushes,
) => {
  const { finish, finishInTransaction } = finishing(recordEnds, recordPushes);
  const endWaiting = endingWaiting(recordEnds, recordPushes);
  const deleteThreads = deletingThreads(recordEnds);
  const { forgetRun, forgetRuns } = forgetting(recordEnds);

  /** The caller updates the threads' run counts. */
  const withdraw = async (
    transaction: Queryable,
    runs: readonly WaitingRun[],
    action: CancelAction,
    reason: CancelReason,
  ): Promise<RunEnd[]> => {
    if (runs.length === 0) return [];
    let turns: ReadonlyMap<string, number> | undefined;
    if (action === "rollback") {
      turns = await numberEnds(transaction, runs);
      // Before the checkpoints, because the events of a run keep contents.
      await forgetRuns(transaction, runs);
      for (const run of runs) {
        // Only a run recovered from a dead server has checkpoints.
        if (run.attempt > 0) await checkpoints.deleteRun(run.thread_id, run.run_id, transaction);
      }
    } else await endWaiting(transaction, runs, reason);
    return runs.map((run) => ({ run, ...cancelled(action), turn: turns?.get(run.run_id) }));
  };

  return {
    finish: (
      attempt: AttemptSelector,
      outcome: RunOutcome,
      lastCheckpoint?: { checkpointNs: string; checkpointId: string },
    ): Promise<Finished | undefined> => finish(database, { attempt, outcome, lastCheckpoint }),

    /** False if the attempt no longer holds the run. */
    async rollBack(attempt: AttemptSelector): Promise<boolean> {
      const { threadId, runId } = attempt;
      return await database.transaction(async (transaction) => {
        await lockThread(transaction, threadId);
        if ((await lockAttempt(transaction, attempt)) === undefined) return false;
        await forgetRun(transaction, threadId, runId);
        await checkpoints.deleteRun(threadId, runId, transaction);
        await release(transaction, [{ thread_id: threadId }]);
        return true;
      });
    },

    /**
     * Ends a threadless run; `outcome` undefined: rolls it back. If a process other than `readerHere` reads
     * the run, the outcome stays for that reader until the sweep. Undefined if the attempt no longer holds
     * the run.
     */
    async finishWithThread(
      attempt: AttemptSelector,
      outcome: RunOutcome | undefined,
      readerHere: string,
    ): Promise<Finished | undefined> {
      const { threadId } = attempt;
      return await database.transaction(async (transaction) => {
        await lockThread(transaction, threadId, { forDeletion: true });
        const held = await lockAttempt(transaction, attempt);
        if (held === undefined) return undefined;
        if (outcome !== undefined && held.readerId !== null && held.readerId !== readerHere) {
          return await finishInTransaction(transaction, { attempt, outcome, lastCheckpoint: undefined });
        }
        // The trace goes with the run; its usage stays.
        if (outcome?.records !== undefined && outcome.records.usage.length > 0)
          await storeAttemptRecords(transaction, attempt, { ...outcome.records, spans: null });
        await checkpoints.deleteThread(threadId, transaction);
        await deleteThreads(transaction, [threadId], outcome ?? cancelled("rollback"));
        return { waiting: 0 };
      });
    },

    /** The caller holds the locks of the runs and their threads. */
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
      // A run that waited behind one of these runs may be next.
      if (others.length > 0) await advance(transaction, await release(transaction, others));
      return [...withThread.map((run) => ({ run, ...cancelled(action) })), ...ends];
    },

    /** The caller holds the locks. sql/create.ts updates the run count. */
    replaceWaiting: withdraw,

    /** The caller holds the threads' locks, for deletion. */
    async deleteThreads(transaction: Queryable, threadIds: readonly string[]): Promise<RunEnd[]> {
      const runs = await lockUnfinishedOf(transaction, threadIds);
      await deleteThreads(transaction, threadIds, { status: "deleted", error: null });
      for (const threadId of threadIds) await checkpoints.deleteThread(threadId, transaction);
      return runs.map((run) => ({ run, status: "deleted", error: null }));
    },
  };
};

export type RunEnds = ReturnType<typeof createRunEnds>;
