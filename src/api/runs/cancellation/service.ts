import type { Authorize } from "../../../access/authorize.ts";
import type { Caller } from "../../../access/caller.ts";
import type { Visibility } from "../../../access/visibility.ts";
import type { CancelAction, CancelReason } from "../../../platform/database/tables.ts";
import type { CreatedRun } from "../joining/results.ts";
import type { RunSelector } from "../repository.ts";
import type { Cancellation, UnfinishedFilter } from "./cancellation.ts";

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

export type CancellationService = ReturnType<typeof createCancellationService>;
