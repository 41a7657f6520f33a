/** Holds back the graph `gated.ts`: the server imports a copy of its own of that module, so what both see is a global. */
const GATE = Symbol.for("threadloom.test.console.gate");
const shared = globalThis as unknown as Record<symbol, Set<() => void>>;

const waiting = (): Set<() => void> => (shared[GATE] ??= new Set());

export const waitAtGate = (): Promise<void> => new Promise((resolve) => waiting().add(resolve));

/** Lets all that wait go on; answers how many they are. */
export const openGate = (): number => {
  const all = [...waiting()];
  waiting().clear();
  for (const go of all) go();
  return all.length;
};
