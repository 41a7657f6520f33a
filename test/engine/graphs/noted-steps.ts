/** Twenty quick steps in a row. Each records its run and attempt for the test in the same process. */
import { setTimeout as pause } from "node:timers/promises";
import { Annotation, START, StateGraph, type LangGraphRunnableConfig } from "@langchain/langgraph";
import { noteStep } from "./noted.ts";

const STEPS = 20;
const STEP_MS = 50;

const State = Annotation.Root({
  steps: Annotation<number[]>({ reducer: (done, added) => [...done, ...added], default: () => [] }),
});

const aStep = (number: number) => async (_: unknown, config: LangGraphRunnableConfig) => {
  const { run_id, run_attempt } = config.configurable as { run_id: string; run_attempt: number };
  noteStep(run_id, run_attempt, number);
  await pause(STEP_MS, undefined, { signal: config.signal });
  return { steps: [number] };
};
type Step = ReturnType<typeof aStep>;

const builder = new StateGraph(State).addSequence(
  Array.from({ length: STEPS }, (_, index): [string, Step] => [`step_${index + 1}`, aStep(index + 1)]),
);

export const graph = builder.addEdge(START, "step_1").compile();
