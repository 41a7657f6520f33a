/** Pauses between retries. */
export interface BackOff {
  /** The next pause in milliseconds. Pauses grow. */
  next(): number;
  /** Call it after a success: the next pause is short again. */
  reset(): void;
}

export interface BackOffOptions {
  firstMs?: number;
  longestMs?: number;
}

/** Short: most passing faults end at once, such as a deadlock or an idle connection that was closed. */
const FIRST_MS = 50;
/** Long enough for a database that is starting, short enough for the callers that wait for the database. */
const LONGEST_MS = 1_000;

/**
 * Doubles each pause and subtracts up to half at random, so that processes that lost the same database do not return
 * together.
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
