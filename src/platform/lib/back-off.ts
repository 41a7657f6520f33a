/** Pauses between tries of what may succeed a moment later. */
export interface BackOff {
  /** The next pause in milliseconds, longer each time. */
  next(): number;
  /** Something succeeded: the next pause is a short one again. */
  reset(): void;
}

export interface BackOffOptions {
  firstMs?: number;
  longestMs?: number;
}

/** Short, because most of what passes is over at once: a deadlock, a connection that was closed while it was idle. */
const FIRST_MS = 50;
/** Long enough for a database that has just started, and short enough for those who wait for it. */
const LONGEST_MS = 1_000;

/**
 * Each pause is twice the one before, less up to the half of it by chance: processes that lost the same database
 * must not come back to it in the same millisecond, time after time.
 */
export const createBackOff = ({
  firstMs = FIRST_MS,
  longestMs = LONGEST_MS,
}: BackOffOptions = {}): BackOff => {
  let upTo = Math.min(firstMs, longestMs);
  return {
    next() {
      const pause = upTo * (1 - Math.random() / 2);
      upTo = Math.min(upTo * 2, longestMs);
      return pause;
    },
    reset() {
      upTo = Math.min(firstMs, longestMs);
    },
  };
};
