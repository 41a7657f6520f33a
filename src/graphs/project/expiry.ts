import { z } from "zod";

export interface ThreadTtl {
  minutes: number;
  strategy: "delete" | "keep_latest";
}

/** A hundred years. */
export const TTL_MINUTES_AT_MOST = 52_560_000;

/** The server's default. */
export interface ThreadExpiry {
  /** Undefined: threads never expire by default. */
  defaultTtl: ThreadTtl | undefined;
  sweepIntervalMinutes: number;
  /** Undefined: all expired threads. */
  threadsPerSweep: number | undefined;
}

/** Sweeps always run, because threads may have their own TTL. An empty sweep costs one index lookup. */
export const DEFAULT_THREAD_EXPIRY: ThreadExpiry = {
  defaultTtl: undefined,
  sweepIntervalMinutes: 1,
  threadsPerSweep: undefined,
};

export interface StoreExpiry {
  /** Minutes after the last read or write; undefined for never. */
  defaultMinutes: number | undefined;
  /** Whether a read restarts the time. */
  refreshOnRead: boolean;
  /** Expired items are hidden before. */
  sweepIntervalMinutes?: number | undefined;
}

/** LangGraph's default: only items with their own TTL expire, counted from their last read or write. */
export const DEFAULT_EXPIRY: StoreExpiry = { defaultMinutes: undefined, refreshOnRead: true };

const minutes = z.number().positive().max(TTL_MINUTES_AT_MOST).nullish();

export const checkpointerSchema = z
  .object({
    ttl: z
      .object({
        strategy: z.enum(["delete", "keep_latest"]).nullish(),
        default_ttl: minutes,
        sweep_interval_minutes: minutes,
        sweep_limit: z.int().positive().nullish(),
      })
      .nullish(),
  })
  .nullish();
export const storeTtlSchema = z
  .object({
    default_ttl: minutes,
    refresh_on_read: z.boolean().nullish(),
    sweep_interval_minutes: minutes,
  })
  .nullish();

export const threadExpiryOf = (checkpointer: z.output<typeof checkpointerSchema>): ThreadExpiry => {
  const { strategy, default_ttl, sweep_interval_minutes, sweep_limit } = checkpointer?.ttl ?? {};
  return {
    defaultTtl: default_ttl ? { minutes: default_ttl, strategy: strategy ?? "delete" } : undefined,
    sweepIntervalMinutes: sweep_interval_minutes ?? DEFAULT_THREAD_EXPIRY.sweepIntervalMinutes,
    threadsPerSweep: sweep_limit ?? DEFAULT_THREAD_EXPIRY.threadsPerSweep,
  };
};

export const storeExpiryOf = (ttl: z.output<typeof storeTtlSchema>): StoreExpiry => ({
  defaultMinutes: ttl?.default_ttl ?? DEFAULT_EXPIRY.defaultMinutes,
  refreshOnRead: ttl?.refresh_on_read ?? DEFAULT_EXPIRY.refreshOnRead,
  sweepIntervalMinutes: ttl?.sweep_interval_minutes ?? DEFAULT_EXPIRY.sweepIntervalMinutes,
});
