import { createYieldPoint, type TimeSlicer } from "../../../platform/lib/time-slicer.ts";
import { invalid, unavailable } from "../../../platform/domain/errors.ts";
import type { Spend } from "./containment.ts";

/** Without pauses. A search by values is answered within about a second or refused. */
const VALUES_SEARCH_MS = 900;
/** A search waits at most this long for other searches. */
const WAITING_MS = 5_000;
/** About 0.2 s. */
const COMPARISONS_AT_MOST = 10_000_000;

/** Limits one search by values. No index holds values, so it must read every candidate. */
export interface Effort {
  /** Throws `invalid` after too many comparisons. */
  spend: Spend;
  /**
   * Yields without counting the pause. Rejects with `invalid` after the search's time, with `unavailable` after
   * `WAITING_MS`, and with the signal's reason.
   */
  goOn(): Promise<void>;
  /** Waits without counting the time. */
  wait<T>(waiting: Promise<T>): Promise<T>;
}

export const tooManyThreadsToRead = (why: string): Error =>
  invalid(`'values': ${why}; narrow the search with 'metadata', 'status' or 'ids'.`);

export const createEffort = (slicer: TimeSlicer, signal: AbortSignal | undefined): Effort => {
  let end = performance.now() + VALUES_SEARCH_MS;
  const yieldPoint = createYieldPoint(slicer, signal);
  let comparisons = 0;
  let waitedMs = 0;
  return {
    spend(more) {
      comparisons += more;
      if (comparisons > COMPARISONS_AT_MOST) throw tooManyThreadsToRead("there is too much to compare");
    },
    async wait(waiting) {
      const start = performance.now();
      const waited = await waiting;
      end += performance.now() - start;
      return waited;
    },
    async goOn() {
      const start = performance.now();
      await yieldPoint();
      const pausedMs = performance.now() - start;
      end += pausedMs;
      waitedMs += pausedMs;
      if (waitedMs > WAITING_MS)
        throw unavailable("Too many searches by 'values' are being made at the moment.");
      if (performance.now() < end) return;
      throw tooManyThreadsToRead("looking into all threads that could match takes longer than a second");
    },
  };
};
