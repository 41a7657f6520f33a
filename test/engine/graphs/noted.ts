/** The steps of runs of the graph `noted-steps`, also those of another copy of this file (see test/fixtures/gates.ts). */
const STEPS = Symbol.for("threadloom.test.noted-steps");

const noted = (): string[] => {
  const shared = globalThis as { [STEPS]?: string[] };
  shared[STEPS] ??= [];
  return shared[STEPS];
};

export const noteStep = (runId: string, attempt: number, step: number): void =>
  void noted().push(`${runId} attempt ${attempt} step ${step}`);

/** All steps taken, as `<run> attempt <number> step <number>`, in order. */
export const notedSteps = (): readonly string[] => noted();
