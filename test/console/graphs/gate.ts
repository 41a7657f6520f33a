/** Holds the graph `gated.ts`. The server imports its own copy of that module, so both share a global. */
const GATE = Symbol.for("threadloom.test.console.gate");
const shared = globalThis as unknown as Record<symbol, Set<() => void>>;

const waiting = (): Set<() => void> => (shared[GATE] ??= new Set());

export const waitAtGate = (): Promise<void> => new Promise((resolve) => waiting().add(resolve));

/** Releases all waiting nodes; returns their number. */
export const openGate = (): number => {
  const all = [...waiting()];
  waiting().clear();
  for (const go of all) go();
  return all.length;
};
