import { setTimeout as delay } from "node:timers/promises";
import type { Authorize } from "../../../access/authorize.ts";
import { THE_SERVER } from "../../../access/caller.ts";
import type { CheckpointStorage } from "../../../state/checkpoints/types.ts";
import type { Database } from "../../../platform/database/database.ts";
import { logFailure } from "../../../platform/database/outages.ts";
import type { Logger } from "../../../platform/lib/logger.ts";
import { startPeriodic } from "../../../platform/lib/periodic.ts";
import type { ThreadExpiry } from "../../../graphs/project/expiry.ts";
import { deleteExpired, lockExpired, markPruned } from "./repository.ts";

/*
 * `skip locked` lets several processes work side by side. A new run waits some milliseconds for a prune, or comes first
 * and keeps the thread. See docs/decisions/007-retention.md.
 */

export interface RetentionOptions {
  database: Database;
  authorize: Authorize;
  checkpoints: Pick<CheckpointStorage, "deleteThread" | "keepLatest">;
  onThreadsDeleted?: (threadIds: readonly string[]) => void;
  /** Monotonic milliseconds. */
  now?: () => number;
  logger: Logger;
}

/** Numbers of threads. */
export interface SweptThreads {
  deleted: number;
  pruned: number;
  failed: number;
}

export interface Retention {
  /** Removes expired threads until none is left or `signal` aborts. */
  sweep(limit?: number, signal?: AbortSignal): Promise<SweptThreads>;
}

/** Large enough that the cost of the commit does not matter. */
const FIRST_BATCH = 50;
const BATCH_AT_MOST = 800;
/** Longer transactions halve the next batch, so that locks are not held for seconds. */
const BATCH_MS = 250;
/** So many failures are not the fault of single threads. */
const FAILED_AT_MOST = 1_000;

const nextBatch = (size: number, tookMs: number): number =>
  tookMs > BATCH_MS
    ? Math.max(1, Math.trunc(size / 2))
    : tookMs < BATCH_MS / 2
      ? Math.min(BATCH_AT_MOST, size * 2)
      : size;

/** A server may restart before a full interval has passed. */
const FIRST_SWEEP_WITHIN_MS = 60_000;
const MS_PER_MINUTE = 60_000;

export const createRetention = (options: RetentionOptions): Retention => {
  const {
    database,
    authorize,
    checkpoints,
    onThreadsDeleted,
    logger,
    now = () => performance.now(),
  } = options;

  /** `picked` receives the ids of the deleted threads. */
  const deleteBatch = async (except: readonly string[], limit: number, picked: string[]): Promise<void> => {
    const visibility = await authorize(THE_SERVER, "threads", "delete", {});
    await database.transaction(async (transaction) => {
      picked.push(...(await deleteExpired(transaction, visibility, except, limit)));
      for (const threadId of picked) await checkpoints.deleteThread(threadId, transaction);
    });
    if (picked.length > 0) onThreadsDeleted?.(picked);
  };

  /** The cost of a prune depends on the thread. */
  const pruneOne = async (except: readonly string[], picked: string[]): Promise<void> => {
    const visibility = await authorize(THE_SERVER, "threads", "delete", {});
    await database.transaction(async (transaction) => {
      const threadId = await lockExpired(transaction, visibility, except);
      if (threadId === undefined) return;
      picked.push(threadId);
      await checkpoints.keepLatest(threadId, transaction);
      await markPruned(transaction, visibility, threadId);
    });
  };

  return {
    async sweep(limit = Number.POSITIVE_INFINITY, signal) {
      const swept: SweptThreads = { deleted: 0, pruned: 0, failed: 0 };
      // A thread that always fails must not block the others.
      const failed: string[] = [];
      let batch = FIRST_BATCH;
      const steps = [
        [
          "deleted",
          async (picked: string[], left: number) => {
            const [size, startedAt] = [Math.min(left, batch), now()];
            await deleteBatch(failed, size, picked);
            // An incomplete last batch gives no measure.
            if (picked.length === size) batch = nextBatch(size, now() - startedAt);
          },
        ],
        ["pruned", (picked: string[]) => pruneOne(failed, picked)],
      ] as const;
      for (const [what, work] of steps) {
        while (!signal?.aborted) {
          const left = limit - swept.deleted - swept.pruned - swept.failed;
          if (left <= 0 || failed.length >= FAILED_AT_MOST) break;
          const picked: string[] = [];
          const startedAt = performance.now();
          try {
            await work(picked, left);
            swept[what] += picked.length;
          } catch (error) {
            // The batch was rolled back. Without a picked thread the database is at fault.
            if (picked.length === 0) throw error;
            logger.warn(
              { err: error, threads: picked },
              "expired threads could not be removed; tried again later",
            );
            failed.push(...picked);
            batch = Math.min(batch, FIRST_BATCH);
            swept.failed += picked.length;
          }
          if (picked.length === 0) break;
          // Leaves the database to other callers.
          await delay(performance.now() - startedAt, undefined, { signal }).catch(() => undefined);
        }
      }
      return swept;
    },
  };
};

/** `close` waits for the batch in progress. */
export const startRetention = (
  options: RetentionOptions & { expiry: ThreadExpiry },
): { close(): Promise<void> } => {
  const { expiry, logger } = options;
  const retention = createRetention(options);
  const closing = new AbortController();
  const everyMs = expiry.sweepIntervalMinutes * MS_PER_MINUTE;
  let nextAt = 0;
  const periodic = startPeriodic({
    everyMs: Math.min(everyMs, FIRST_SWEEP_WITHIN_MS),
    async work() {
      if (performance.now() < nextAt) return;
      const startedAt = performance.now();
      const swept = await retention.sweep(expiry.threadsPerSweep, closing.signal);
      // Half a tick early, so that the due tick is not missed. A failed sweep stays due.
      nextAt = startedAt + everyMs - FIRST_SWEEP_WITHIN_MS / 2;
      if (swept.deleted + swept.pruned + swept.failed > 0) logger.info(swept, "expired threads were removed");
    },
    onError: logFailure(logger, "expired threads could not be removed"),
  });
  return {
    async close() {
      closing.abort();
      await periodic.close();
    },
  };
};
