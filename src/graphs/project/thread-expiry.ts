/** How long a thread lives, and what becomes of it then. */
export interface ThreadTtl {
  minutes: number;
  strategy: "delete" | "keep_latest";
}

/** Lets a thread live for a hundred years: a longer one overflows no timestamp but means nothing. */
export const TTL_MINUTES_AT_MOST = 52_560_000;

/** How long threads live and when the expired ones are looked for: the server's setting. */
export interface ThreadExpiry {
  /** For threads whose creator does not say; undefined: they stay for ever. */
  defaultTtl: ThreadTtl | undefined;
  sweepIntervalMinutes: number;
  /** Threads that one sweep deletes or prunes at most; undefined: all that have expired. */
  threadsPerSweep: number | undefined;
}

/**
 * Threads may have a time to live of their own even if the server sets none, so there always is a sweep. Every
 * minute, since that is the unit; finding nothing costs one look into an index of the threads that expire.
 */
export const DEFAULT_THREAD_EXPIRY: ThreadExpiry = {
  defaultTtl: undefined,
  sweepIntervalMinutes: 1,
  threadsPerSweep: undefined,
};
