/** Lets in so many at a time; the others wait in the order in which they came. */
export interface Gate {
  /**
   * Resolves when there is a place, with what gives it back (calling that twice does no harm). Rejects with `full()`
   * after the time that is waited at most, with the signal's reason when that aborts.
   */
  enter(signal?: AbortSignal): Promise<() => void>;
}

export interface GateOptions {
  places: number;
  waitMs: number;
  /** What those are told who have waited in vain. */
  full: () => Error;
}

export const createGate = ({ places, waitMs, full }: GateOptions): Gate => {
  let free = places;
  const waiting = new Set<() => void>();

  const leaveOnce = (): (() => void) => {
    let inside = true;
    return () => {
      if (!inside) return;
      inside = false;
      const [next] = waiting;
      if (next === undefined) free += 1;
      else next();
    };
  };

  return {
    enter: (signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason as Error);
        if (free > 0) {
          free -= 1;
          return resolve(leaveOnce());
        }
        const stop = (): void => {
          waiting.delete(letIn);
          clearTimeout(timer);
          signal?.removeEventListener("abort", giveUp);
        };
        const letIn = (): void => {
          stop();
          resolve(leaveOnce());
        };
        const giveUp = (): void => {
          stop();
          reject(signal?.reason as Error);
        };
        const timer = setTimeout(() => {
          stop();
          reject(full());
        }, waitMs);
        signal?.addEventListener("abort", giveUp);
        waiting.add(letIn);
      }),
  };
};
