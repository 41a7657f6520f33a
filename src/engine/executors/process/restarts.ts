import { createBackOff } from "../../../platform/lib/back-off.ts";
import type { Member } from "./member.ts";

/** A process that ended sooner than this, and not by a run, is not started again at once. */
const SHORT_LIFE_MS = 1_000;
const LONGEST_PAUSE_MS = 5_000;

/** When the next process is started. A suspect that ends its processes at once delays nobody's start but its own. */
export const createRestarts = () => {
  const shared = createBackOff({ longestMs: LONGEST_PAUSE_MS });
  const alone = createBackOff({ longestMs: LONGEST_PAUSE_MS });
  return {
    /** What a run has ended is bounded by its attempts, and costs no pause. */
    pauseMsAfter({ role, state, begun, readyAt }: Member): number {
      const backOff = role === "alone" ? alone : shared;
      const isShort = state === "starting" || (begun === 0 && performance.now() - readyAt < SHORT_LIFE_MS);
      if (isShort) return backOff.next();
      backOff.reset();
      return 0;
    },
  };
};
