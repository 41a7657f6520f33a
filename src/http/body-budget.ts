import type { CountedCaller } from "./limits/counted-callers.ts";

/**
 * Bounds the memory of all bodies that a process receives at the same time. Small bodies have a separate budget, and
 * each caller a share of both: one user's four unfinished bodies of 16 MB blocked all others.
 */
export interface BodyBudget {
  /** `caller` undefined: no share. */
  open(caller?: CountedCaller): BodyCharge;
}

/** `share spent`: the caller's share; `budget spent`: the budget of all callers. */
export type BodyGrowth = "taken" | "share spent" | "budget spent";

export interface BodyCharge {
  /** Takes all of the bytes or none. */
  grow(bytes: number): BodyGrowth;
  /** Returns all bytes to the budget. May be called repeatedly. */
  release(): void;
}

/** Messages are smaller; pictures and documents are larger. */
const SMALL_BODY_BYTES = 64 * 1024;

interface Taken {
  small: number;
  large: number;
}

/**
 * `bytes`: for all large bodies, and as much again for all small ones. `share`: for a caller in each of the two,
 * multiplied by its `times`.
 */
export const createBodyBudget = (bytes: number, share = bytes): BodyBudget => {
  const taken: Taken = { small: 0, large: 0 };
  /** Holds only callers with bytes taken. */
  const byCaller = new Map<string, Taken>();
  const potOf = (size: number) => (size <= SMALL_BODY_BYTES ? "small" : "large");

  return {
    open(caller) {
      let size = 0;
      const shareOfCaller = caller === undefined ? bytes : Math.min(bytes, share * caller.times);
      const add = (pot: keyof Taken, more: number): void => {
        taken[pot] += more;
        if (caller === undefined) return;
        const own = byCaller.get(caller.name) ?? { small: 0, large: 0 };
        own[pot] += more;
        if (own.small + own.large === 0) byCaller.delete(caller.name);
        else byCaller.set(caller.name, own);
      };
      return {
        grow(more) {
          const from = potOf(size);
          const to = potOf(size + more);
          const needed = from === to ? more : size + more;
          const own = caller === undefined ? 0 : (byCaller.get(caller.name)?.[to] ?? 0);
          if (own + needed > shareOfCaller) return "share spent";
          if (taken[to] + needed > bytes) return "budget spent";
          if (from !== to) add(from, -size);
          add(to, needed);
          size += more;
          return "taken";
        },
        release() {
          if (size > 0) add(potOf(size), -size);
          size = 0;
        },
      };
    },
  };
};
