export interface TimeSlicerOptions {
  /** How long the work may go on in one turn of the event loop before it makes room. */
  sliceMs: number;
  /**
   * How long the work then rests, given how long it went on; nothing if left out: the next slice begins with the next
   * turn of the loop.
   */
  restMs?: (workedMs: number) => number;
}

/** Makes work of one kind share the event loop of a process with everything else in it. */
export interface TimeSlicer {
  /** What the work has to wait for before it goes on; undefined while the present slice is young. */
  next(): Promise<void> | undefined;
}

/**
 * All work that asks one pacer goes on piece by piece, one after the other: slices do not add up in one turn of the
 * loop, however many there are. An ordinary request needs some fifteen turns.
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

/** Awaited between two rounds of a loop, lets others have their turn; rejects with the signal's reason. */
export const createYieldPoint =
  (slicer: TimeSlicer, signal?: AbortSignal): (() => Promise<void>) =>
  async () => {
    signal?.throwIfAborted();
    const turn = slicer.next();
    if (turn === undefined) return;
    await turn;
    signal?.throwIfAborted();
  };
