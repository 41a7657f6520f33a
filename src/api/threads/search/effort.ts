import { createYieldPoint, type Yielder } from "../../../platform/lib/yielder.ts";
import { invalid, unavailable } from "../../../platform/domain/errors.ts";
import type { Spend } from "./containment.ts";

/** Of its own work, rests not counted: a search by values alone is answered within a second or little more, or refused. */
const VALUES_SEARCH_MS = 900;
/** That it may wait for others who share its pace: it is not its caller's fault that these are many. */
const WAITING_MS = 5_000;
/** Of elements of lists with elements of the filter; some 0.2 s. */
const COMPARISONS_AT_MOST = 10_000_000;

/** What one search by values may take: no index knows values, so each thread that is left is looked into. */
export interface Effort {
  /** Throws `invalid` when there were more comparisons than a search may make. */
  spend: Spend;
  /**
   * Awaited between two threads. Lets others have their turn, which is not counted as time of its own; rejects with `invalid`
   * when that is over, with `unavailable` when it has waited for others for too long, and with the signal's reason.
   */
  goOn(): Promise<void>;
  /** Waits for something that is none of its work, and does not count the time. */
  wait(waiting: Promise<void> | undefined): Promise<void>;
}

/** Names what makes it less work. */
export const tooManyThreadsToRead = (why: string): Error =>
  invalid(`'values': ${why}; narrow the search with 'metadata', 'status' or 'ids'.`);

export const createEffort = (yielder: Yielder, signal: AbortSignal | undefined): Effort => {
  let end = performance.now() + VALUES_SEARCH_MS;
  const yieldPoint = createYieldPoint(yielder, signal);
  let comparisons = 0;
  let waitedMs = 0;
  return {
    spend(more) {
      comparisons += more;
      if (comparisons > COMPARISONS_AT_MOST) throw tooManyThreadsToRead("there is too much to compare");
    },
    async wait(waiting) {
      const start = performance.now();
      await waiting;
      end += performance.now() - start;
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
