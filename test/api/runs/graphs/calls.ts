/** The arguments of factory calls. Server and test may load separate copies of this file, so the list is on the global object. */
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
