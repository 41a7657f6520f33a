/**
 * How long a graph may go on in one turn of the event loop before it makes room: about two steps of a simple one. A
 * request needs some fifteen turns, so a graph that never waits makes it some 8 ms slower, and so do ten of them.
 */
const SLICE_MS = 0.5;

/** Makes the graphs of a process share its event loop with everything else in it. */
export interface Turns {
  /** What a graph has to wait for before its next step; undefined while the present turn is young. */
  next(): Promise<void> | undefined;
}

/**
 * LangGraph waits between two steps for promises only. If no node waits for anything else, no timer fires and no
 * socket is read meanwhile, for as long as the graph goes on: with a recursion limit of a billion, for days.
 * Of several such graphs each gets a turn of its own, so that turns do not get longer.
 */
export const createTurns = (): Turns => {
  const waiting: Array<() => void> = [];
  let beganAt: number | undefined;

  const begin = (now: number): void => {
    beganAt = now;
    setImmediate(end);
  };
  const end = (): void => {
    beganAt = undefined;
    const goOn = waiting.shift();
    if (goOn === undefined) return;
    begin(performance.now());
    goOn();
  };

  return {
    next() {
      const now = performance.now();
      if (beganAt === undefined) begin(now);
      else if (now - beganAt >= SLICE_MS) return new Promise((resolve) => waiting.push(resolve));
      return undefined;
    },
  };
};
