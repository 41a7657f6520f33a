export interface TimeSlicerOptions {
  /** How long the work may occupy one turn of the event loop. */
  sliceMs: number;
  /** Pause after a slice, given its length. Default: the next slice begins in the next turn of the event loop. */
  restMs?: (workedMs: number) => number;
}

/** Lets work of one kind share the event loop with all other work of the process. */
export interface TimeSlicer {
  /** A promise to await before the next piece of work, or undefined while the current slice lasts. */
  next(): Promise<void> | undefined;
}

/**
 * All work that uses one slicer runs one piece at a time, so slices do not add up in one turn of the event loop. An
 * ordinary request needs about fifteen turns.
 */
export const createTimeSlicer = ({ sliceMs, restMs = () => 0 }: TimeSlicerOptions): TimeSlicer => {
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
    next() {
      if (beganAt === undefined && !resting) begin();
      else if (resting || performance.now() - (beganAt ?? 0) >= sliceMs)
        return new Promise((resolve) => waiting.push(resolve));
      return undefined;
    },
  };
};

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
