/** Two nodes; in a run's first attempt the second one never ends, in later ones it is quick. */
import { setTimeout as pause } from "node:timers/promises";
import { Annotation, END, START, StateGraph, type LangGraphRunnableConfig } from "@langchain/langgraph";

const FOR_EVER_MS = 600_000;

const State = Annotation.Root({
  first: Annotation<number[]>({ reducer: (one, other) => [...one, ...other], default: () => [] }),
  second: Annotation<number[]>({ reducer: (one, other) => [...one, ...other], default: () => [] }),
});

const attemptOf = (config: LangGraphRunnableConfig): number =>
  (config.configurable as { run_attempt: number }).run_attempt;

export const graph = new StateGraph(State)
  .addNode("one", (_, config: LangGraphRunnableConfig) => ({ first: [attemptOf(config)] }))
  .addNode("two", async (_, config: LangGraphRunnableConfig) => {
    config.writer?.({ second: attemptOf(config) });
    if (attemptOf(config) === 1) await pause(FOR_EVER_MS, undefined, { signal: config.signal });
    return { second: [attemptOf(config)] };
  })
  .addEdge(START, "one")
  .addEdge("one", "two")
  .addEdge("two", END)
  .compile();
