/** Most passing faults end at once, such as a deadlock. */
const FIRST_MS = 50;
/** Long enough for a starting database, short enough for waiting callers. */
const LONGEST_MS = 1_000;

/** Doubles each pause and subtracts up to half at random, so that processes return at different times. */
export const createBackOff = ({ firstMs = FIRST_MS, longestMs = LONGEST_MS } = {}) => {
  let upTo = Math.min(firstMs, longestMs);
  return {
    next(): number {
      const pause = upTo * (1 - Math.random() / 2);
      upTo = Math.min(upTo * 2, longestMs);
      return pause;
    },
    reset(): void {
      upTo = Math.min(firstMs, longestMs);
    },
  };
};
