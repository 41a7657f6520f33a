import { setTimeout as delay } from "node:timers/promises";
import type { Authorize } from "../../access/authorize.ts";
import { THE_SERVER } from "../../access/caller.ts";
import type { ThreadExpiry } from "../../graphs/project/expiry.ts";
import type { Database } from "../../platform/database/database.ts";
import { logFailure } from "../../platform/database/outages.ts";
import { literal, statement } from "../../platform/database/statement.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { startPeriodic } from "../../platform/lib/periodic.ts";
import type { CheckpointStorage } from "../../state/checkpoints/types.ts";
import { deleteIdle, pruneIdle } from "./upkeep.ts";

/*
 * `skip locked` lets several processes work side by side. A new run waits some milliseconds for a prune, or comes first
 * and keeps the thread. See docs/decisions/007-retention.md.
 */

/**
 * `expires_bin` is indexed and never later than `expires_at`. The limit is a literal: with a parameter, the planner expects
 * a tenth of all expired threads and may sort them. Index: threads_by_expiry.
 */
const LOCK_EXPIRED = statement(
  { strategy: "text", except: "uuid[]", visible: "fragment", limit: "fragment" },
  (sql) => `select thread_id from threadloom.threads
  where expires_bin <= now() and expires_at <= now() and unfinished_runs = 0 and ttl_strategy = ${sql.strategy}
    and not thread_id = any(${sql.except}) and ${sql.visible}
  order by expires_bin limit ${sql.limit} for update skip locked`,
);

export interface RetentionOptions {
  database: Database;
  authorize: Authorize;
  checkpoints: Pick<CheckpointStorage, "deleteThread" | "keepLatest">;
  onThreadsDeleted?: (threadIds: readonly string[]) => void;
  logger: Logger;
}

/** Numbers of threads. */
interface SweptThreads {
  deleted: number;
  pruned: number;
  failed: number;
}

/** The cost of a prune depends on the thread. */
const STEPS = [
  { what: "deleted", strategy: "delete", batch: 100 },
  { what: "pruned", strategy: "keep_latest", batch: 1 },
] as const;
/** So many failures are not the fault of single threads. */
const FAILED_AT_MOST = 1_000;

export const createRetention = (options: RetentionOptions) => {
  const { database, authorize, checkpoints, onThreadsDeleted, logger } = options;

  /** `picked` receives the ids of the threads. */
  const removeSome = async (
    strategy: (typeof STEPS)[number]["strategy"],
    except: readonly string[],
    limit: number,
    picked: string[],
  ): Promise<void> => {
    const visibility = await authorize(THE_SERVER, "threads", "delete", {});
    const visible = visibility.on("metadata");
    await database.transaction(async (transaction) => {
      const expired = { strategy, except, visible, limit: literal(limit) };
      const rows = await LOCK_EXPIRED.query<{ thread_id: string }>(transaction, expired);
      picked.push(...rows.map(({ thread_id }) => thread_id));
      if (picked.length === 0) return;
      if (strategy === "delete") await deleteIdle(transaction, checkpoints, visibility, picked);
      else for (const id of picked) await pruneIdle(transaction, checkpoints, visibility, id);
    });
    if (strategy === "delete" && picked.length > 0) onThreadsDeleted?.(picked);
  };

  return {
    /** Removes expired threads until none is left or `signal` aborts. */
    async sweep(limit = Number.POSITIVE_INFINITY, signal?: AbortSignal): Promise<SweptThreads> {
      const swept: SweptThreads = { deleted: 0, pruned: 0, failed: 0 };
      // A thread that always fails must not block the others.
      const failed: string[] = [];
      for (const { what, strategy, batch } of STEPS) {
        while (!signal?.aborted) {
          const left = limit - swept.deleted - swept.pruned - swept.failed;
          if (left <= 0 || failed.length >= FAILED_AT_MOST) break;
          const picked: string[] = [];
          const startedAt = performance.now();
          try {
            await removeSome(strategy, failed, Math.min(left, batch), picked);
            swept[what] += picked.length;
          } catch (error) {
            // The batch was rolled back. Without a picked thread the database is at fault.
            if (picked.length === 0) throw error;
            const text = "expired threads could not be removed; tried again later";
            logger.warn({ err: error, threads: picked }, text);
            failed.push(...picked);
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

/** A server may restart before a full interval has passed. */
const FIRST_SWEEP_WITHIN_MS = 60_000;
const MS_PER_MINUTE = 60_000;

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
