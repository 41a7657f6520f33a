/**
 * The work of one slicer runs one piece at a time, so slices do not add up in one turn of the event loop. A request
 * needs about 15 turns.
 */
export const createTimeSlicer = (sliceMs: number, restMs: (workedMs: number) => number = () => 0) => {
  const waiting: Array<() => void> = [];
  let beganAt: number | undefined;
  let resting = false;

  const begin = (): void => {
    beganAt = performance.now();
    setImmediate(end);
  };
  const end = (): void => {
    const workedMs = performance.now() - (beganAt ?? 0);
    beganAt = undefined;
    const rest = workedMs < sliceMs ? 0 : restMs(workedMs);
    if (rest === 0) return goOn();
    resting = true;
    setTimeout(goOn, rest);
  };
  const goOn = (): void => {
    resting = false;
    const next = waiting.shift();
    if (next === undefined) return;
    begin();
    next();
  };

  return {
    /** Await the promise before the next piece of work. Undefined: the current slice goes on. */
    next(): Promise<void> | undefined {
      if (beganAt === undefined && !resting) begin();
      else if (resting || performance.now() - (beganAt ?? 0) >= sliceMs)
        return new Promise((resolve) => waiting.push(resolve));
      return undefined;
    },
  };
};

export type TimeSlicer = ReturnType<typeof createTimeSlicer>;

/** Await the returned function between two rounds of a loop. Rejects with the signal's reason. */
export const createYieldPoint =
  (slicer: TimeSlicer, signal?: AbortSignal): (() => Promise<void>) =>
  async () => {
    signal?.throwIfAborted();
    const turn = slicer.next();
    if (turn === undefined) return;
    await turn;
    signal?.throwIfAborted();
  };
