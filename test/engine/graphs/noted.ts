/** What runs of the graph `noted-steps` did, also those of another copy of this file (see test/fixtures/gates.ts). */
const STEPS = Symbol.for("threadloom.test.noted-steps");

const noted = (): string[] => {
  const shared = globalThis as { [STEPS]?: string[] };
  shared[STEPS] ??= [];
  return shared[STEPS];
};

/** An attempt takes a step. */
export const noteStep = (runId: string, attempt: number, step: number): void =>
  void noted().push(`${runId} attempt ${attempt} step ${step}`);

/** All steps that were taken, as `<run> attempt <number> step <number>`, in order. */
export const notedSteps = (): readonly string[] => noted();
