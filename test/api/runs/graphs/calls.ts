/**
 * What factories were called with. The graph is loaded by the server and the test imports this file, maybe as another
 * copy: what they share is on the global object.
 */
const CALLS = Symbol.for("threadloom.test.factory-calls");

export interface FactoryCall {
  configurable: Record<string, unknown>;
  context: unknown;
  accessContext: unknown;
  executionRuntime: unknown;
}

export const factoryCalls = (): FactoryCall[] => {
  const shared = globalThis as { [CALLS]?: FactoryCall[] };
  return (shared[CALLS] ??= []);
};
