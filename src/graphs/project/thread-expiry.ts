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
