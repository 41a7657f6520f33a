import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import type { Visibility } from "../../access/visibility.ts";
import type { Database } from "../../platform/database/database.ts";
import type { CancelAction, CancelReason, RunStatus } from "../../platform/database/tables.ts";
import { runNotFound } from "../../platform/domain/errors.ts";
import type { Announcements } from "./announcements.ts";
import type { CreatedRun } from "./joining/results.ts";
import type { RunSelector } from "../../engine/queue/attempts.ts";
import type { RunEnds } from "../../engine/queue/ending.ts";
import { askToCancel } from "../../engine/queue/sql/ask-to-cancel.ts";
import { listNamed, unfinishedPages } from "../../engine/queue/sql/list-unfinished.ts";
import { lockThreads } from "../../engine/queue/sql/lock-threads.ts";
import { lockRuns } from "../../engine/queue/sql/lock-unfinished.ts";

export interface CancellationParts {
  database: Database;
  announcements: Announcements;
  ends: Pick<RunEnds, "cancelWaiting">;
}

export interface UnfinishedFilter {
  threadId?: string | undefined;
  runIds?: string[] | undefined;
  status: "pending" | "running" | "all";
}

/** A batch holds its locks for 15 ms on one thread. */
const RUNS_PER_BATCH = 500;

/** Running runs are asked to stop. Pending ones end, or are removed for a rollback. */
export const createCancellation = ({ database, ends, announcements }: CancellationParts) => {
  const cancelBatch = async (
    visibility: Visibility<"threads">,
    selectors: readonly RunSelector[],
    action: CancelAction,
    reason: CancelReason,
  ): Promise<number> => {
    const { locked: runs, ended } = await database.transaction(async (transaction) => {
      const threadIds = [...new Set(selectors.map((selector) => selector.threadId))];
      const visible = await lockThreads(transaction, visibility, threadIds);
      const runIds = selectors.map((selector) => selector.runId);
      const locked = await lockRuns(transaction, runIds, [...visible]);
      const are = (status: RunStatus) => locked.filter((run) => run.status === status);
      const running = are("running");
      if (running.length > 0) await askToCancel(transaction, running, action, reason);
      return { locked, ended: await ends.cancelWaiting(transaction, are("pending"), action, reason) };
    });
    for (const run of runs) if (run.status === "running") announcements.stop(run, action);
    for (const end of ended) announcements.ended(end);
    return runs.length;
  };

  return {
    /** Throws `runNotFound`. Does nothing to an ended run. */
    async cancel(
      visibility: Visibility<"threads">,
      selector: RunSelector,
      action: CancelAction,
      reason: CancelReason,
    ): Promise<void> {
      if ((await cancelBatch(visibility, [selector], action, reason)) === 0)
        throw runNotFound(selector.runId);
    },

    /** Batches bound memory and locks. */
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
          found += await cancelBatch(
            visibility,
            meant.slice(start, start + RUNS_PER_BATCH),
            action,
            "requested",
          );
        }
        return found;
      }
      const threadIds = threadId === undefined ? undefined : [threadId];
      // If a running run ended first, its thread would start the next pending run.
      for (const each of ["pending", "running"] as const) {
        if (status !== "all" && status !== each) continue;
        const pages = unfinishedPages(database, visibility, each, threadIds, RUNS_PER_BATCH);
        for await (const page of pages) found += await cancelBatch(visibility, page, action, "requested");
      }
      return found;
    },
  };
};

export type Cancellation = ReturnType<typeof createCancellation>;

export const createCancellationService = (
  authorize: Authorize,
  everyThread: Visibility<"threads">,
  cancellation: Cancellation,
  waitForEnd: (selector: RunSelector, options: { signal: AbortSignal }) => Promise<unknown>,
) => {
  return {
    /** With `wait`, resolves after the run has ended. */
    async cancel(
      caller: Caller,
      selector: RunSelector,
      { action, reason }: { action: CancelAction; reason: CancelReason },
      wait: { signal: AbortSignal } | undefined,
    ): Promise<void> {
      const asked = { thread_id: selector.threadId, metadata: {}, action };
      await cancellation.cancel(
        await authorize(caller, "threads", "update", asked),
        selector,
        action,
        reason,
      );
      if (wait !== undefined) await waitForEnd(selector, wait);
    },

    async abandon({ row }: CreatedRun): Promise<void> {
      await cancellation.cancel(
        everyThread,
        { threadId: row.thread_id, runId: row.run_id },
        "interrupt",
        "disconnected",
      );
    },

    /** Returns how many runs were found. */
    async cancelMany(caller: Caller, filter: UnfinishedFilter, action: CancelAction): Promise<number> {
      const asked = { thread_id: filter.threadId, metadata: {}, action };
      const visibility = await authorize(caller, "threads", "update", asked);
      return await cancellation.cancelMany(visibility, filter, action);
    },
  };
};
