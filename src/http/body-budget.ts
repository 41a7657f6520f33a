import type { CountedCaller } from "./limits/counted-callers.ts";

/**
 * The memory that bodies may take at the same time, all requests of a process together.
 *
 * Bytes count from their arrival until the body has been worked off: what was only announced costs nothing, so nobody
 * can shut others out by announcing. Small bodies have a budget of their own: whoever fills memory with large ones keeps
 * nobody from sending a message. Of either budget a caller has a share: four bodies of 16 MB that one user did not end
 * kept all others from sending theirs.
 */
export interface BodyBudget {
  /** `caller` undefined: nobody is told apart, and has no share. */
  open(caller?: CountedCaller): BodyCharge;
}

/** Whether bytes were taken, and if not, what is spent: the caller's own share, or the budget of all. */
export type BodyGrowth = "taken" | "share spent" | "budget spent";

/** What one request has taken of the budget. */
export interface BodyCharge {
  /** Takes further bytes, or nothing. */
  grow(bytes: number): BodyGrowth;
  /** Gives everything back. May be called again. */
  release(): void;
}

/** An honest message is smaller, a picture or a document is larger. */
const SMALL_BODY_BYTES = 64 * 1024;

interface Taken {
  small: number;
  large: number;
}

/**
 * `bytes`: for all large bodies together, and as much again for all small ones. `share`: of a caller in each of the two, as
 * often as he counts; at least the largest body, or nobody could ever send that.
 */
export const createBodyBudget = (bytes: number, share = bytes): BodyBudget => {
  const taken: Taken = { small: 0, large: 0 };
  /** Only of those who have some. */
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
