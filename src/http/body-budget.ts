/**
 * The memory that bodies may take at the same time, all requests of a process together.
 *
 * Bytes count from their arrival until the body has been worked off: what was only announced costs nothing, so nobody
 * can shut others out by announcing. Small bodies have a budget of their own: whoever fills memory with large ones keeps
 * nobody from sending a message.
 */
export interface BodyBudget {
  open(): BodyCharge;
}

/** What one request has taken of the budget. */
export interface BodyCharge {
  /** Takes further bytes; false if the budget is spent, and then nothing was taken. */
  grow(bytes: number): boolean;
  /** Gives everything back. May be called again. */
  release(): void;
}

/** An honest message is smaller, a picture or a document is larger. */
const SMALL_BODY_BYTES = 64 * 1024;

/** `bytes`: for all large bodies together, and as much again for all small ones. */
export const createBodyBudget = (bytes: number): BodyBudget => {
  const taken = { small: 0, large: 0 };
  const potOf = (size: number) => (size <= SMALL_BODY_BYTES ? "small" : "large");

  return {
    open() {
      let size = 0;
      return {
        grow(more) {
          const from = potOf(size);
          const to = potOf(size + more);
          const needed = from === to ? more : size + more;
          if (taken[to] + needed > bytes) return false;
          if (from !== to) taken[from] -= size;
          taken[to] += needed;
          size += more;
          return true;
        },
        release() {
          taken[potOf(size)] -= size;
          size = 0;
        },
      };
    },
  };
};
