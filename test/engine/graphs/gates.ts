/**
 * Gates that hold back runs of the graph `gate` until a test opens them. The graph is loaded by the server and the
 * test imports this file, maybe as another copy: what they share is on the global object.
 */
const GATES = Symbol.for("threadloom.test.gates");

interface Held {
  label: string;
  open(): void;
}

const held = (): Map<string, Held> => {
  const shared = globalThis as { [GATES]?: Map<string, Held> };
  shared[GATES] ??= new Map();
  return shared[GATES];
};

/** Waits until the gate of a run is opened; rejects when `signal` fires. */
export const waitAtGate = (key: string, label: string, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    const open = () => {
      held().delete(key);
      resolve();
    };
    held().set(key, { label, open });
    signal?.addEventListener("abort", () => {
      held().delete(key);
      reject(signal.reason as Error);
    });
  });

/** Whether the run with this label waits at its gate, in this process. */
export const isAtGate = (label: string): boolean => [...held().values()].some((gate) => gate.label === label);

/** Lets the runs with this label go on. */
export const openGate = (label: string): void => {
  for (const gate of [...held().values()]) if (gate.label === label) gate.open();
};
