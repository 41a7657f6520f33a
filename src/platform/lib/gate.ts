/** Admits a limited number of callers at a time; the others wait in order. */
export const createGate = (places: number, waitMs: number, full: () => Error) => {
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
    /**
     * Resolves with a function that frees the place. Rejects with `full()` after `waitMs`, or with the signal's reason.
     */
    enter: (signal?: AbortSignal): Promise<() => void> =>
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

export type Gate = ReturnType<typeof createGate>;
