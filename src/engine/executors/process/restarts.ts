import { createBackOff } from "../../../platform/lib/back-off.ts";
import type { Member } from "./member.ts";

/** If a process dies sooner and has begun no run, the next start is delayed. */
const SHORT_LIFE_MS = 1_000;
const LONGEST_PAUSE_MS = 5_000;

/** A suspect that ends its processes delays only its own next start. */
export const createRestarts = () => {
  const shared = createBackOff({ longestMs: LONGEST_PAUSE_MS });
  const alone = createBackOff({ longestMs: LONGEST_PAUSE_MS });
  return {
    /** No pause after an end caused by a run: the run's attempts are limited. */
    pauseMsAfter({ role, state, begun, readyAt }: Member): number {
      const backOff = role === "alone" ? alone : shared;
      const isShort = state === "starting" || (begun === 0 && performance.now() - readyAt < SHORT_LIFE_MS);
      if (isShort) return backOff.next();
      backOff.reset();
      return 0;
    },
  };
};
