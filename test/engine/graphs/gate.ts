/** Waits at the gate that the input names (`label`), then notes the label in `done`. */
import { Annotation, END, START, StateGraph, type LangGraphRunnableConfig } from "@langchain/langgraph";
import { waitAtGate } from "./gates.ts";

const State = Annotation.Root({
  label: Annotation<string>(),
  done: Annotation<string[]>({ reducer: (done, added) => [...done, ...added], default: () => [] }),
});

export const graph = new StateGraph(State)
  .addNode("wait", async ({ label }, config: LangGraphRunnableConfig) => {
    const { run_id, run_attempt } = config.configurable as { run_id: string; run_attempt: number };
    config.writer?.({ waiting: label });
    await waitAtGate(`${run_id}:${run_attempt}`, label, config.signal);
    config.writer?.({ opened: label });
    return { done: [label] };
  })
  .addNode("after", () => ({}))
  .addEdge(START, "wait")
  .addEdge("wait", "after")
  .addEdge("after", END)
  .compile();
