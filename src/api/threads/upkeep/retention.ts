import { setTimeout as delay } from "node:timers/promises";
import type { Authorize } from "../../../access/authorize.ts";
import { THE_SERVER } from "../../../access/caller.ts";
import type { CheckpointStorage } from "../../../state/checkpoints/types.ts";
import type { Database } from "../../../platform/database/database.ts";
import { logFailure } from "../../../platform/database/outages.ts";
import type { Logger } from "../../../platform/lib/logger.ts";
import { startPeriodic } from "../../../platform/lib/periodic.ts";
import type { ThreadExpiry } from "../../../graphs/project/thread-expiry.ts";
import { deleteExpired, lockExpired, markPruned } from "./repository.ts";

/*
 * Removes what has outlived its time. See docs/decisions/007-retention.md.
 *
 * Whoever locks a thread's row first has it: several processes pass each other by `skip locked`, and a run that is
 * being created waits the milliseconds that its thread's pruning takes, or comes first and keeps the thread.
 */

export interface RetentionOptions {
  database: Database;
  /** Asked for the server itself. */
  authorize: Authorize;
  checkpoints: Pick<CheckpointStorage, "deleteThread" | "keepLatest">;
  /** Told the ids of threads that are gone. */
  onThreadsDeleted?: (threadIds: readonly string[]) => void;
  /** Milliseconds by a clock that only goes forward. */
  now?: () => number;
  logger: Logger;
}

/** What a sweep did, in threads. */
export interface SweptThreads {
  deleted: number;
  pruned: number;
  /** Left to the next sweep because of an error, which was logged. */
  failed: number;
}

export interface Retention {
  /** Deletes and prunes threads whose time has passed, `limit` of them at most, until there are none or `signal` aborts. */
  sweep(limit?: number, signal?: AbortSignal): Promise<SweptThreads>;
}

/** Deleted in one transaction at first: enough that its commit doesn't count. */
const FIRST_BATCH = 50;
const BATCH_AT_MOST = 800;
/** A transaction gets shorter if it takes longer: the locks of threads with much state are not held for seconds. */
const BATCH_MS = 250;
/** A fault of all threads ends the sweep after so many. */
const FAILED_AT_MOST = 1_000;

/** The size of the next batch, after one of `size` threads that took so long. */
const nextBatch = (size: number, tookMs: number): number =>
  tookMs > BATCH_MS
    ? Math.max(1, Math.trunc(size / 2))
    : tookMs < BATCH_MS / 2
      ? Math.min(BATCH_AT_MOST, size * 2)
      : size;

/** How soon after the start the first sweep is due, however rare they are: restarts must not keep them from happening. */
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

  /** `picked` gets the ids of the threads that are deleted. */
  const deleteBatch = async (except: readonly string[], limit: number, picked: string[]): Promise<void> => {
    const visibility = await authorize(THE_SERVER, "threads", "delete", {});
    await database.transaction(async (transaction) => {
      picked.push(...(await deleteExpired(transaction, visibility, except, limit)));
      for (const threadId of picked) await checkpoints.deleteThread(threadId, transaction);
    });
    if (picked.length > 0) onThreadsDeleted?.(picked);
  };

  /** One thread at a time: what a prune costs depends on the thread. */
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
      // Of this sweep: one thread that fails each time must not keep the others from their turn.
      const failed: string[] = [];
      let batch = FIRST_BATCH;
      const steps = [
        [
          "deleted",
          async (picked: string[], left: number) => {
            const [size, startedAt] = [Math.min(left, batch), now()];
            await deleteBatch(failed, size, picked);
            // A last batch that is not full says nothing.
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
            // Nothing of it has happened. Without threads it was no thread's fault: the database is away.
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
          // Rests as long as it worked: the database stays with those who wait for it.
          await delay(performance.now() - startedAt, undefined, { signal }).catch(() => undefined);
        }
      }
      return swept;
    },
  };
};

/** Sweeps as often as `expiry` says, until it is closed, which waits for the batch in progress. */
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
      // Half a tick early, so that the tick that is due is not missed by a millisecond. One that failed stays due.
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
