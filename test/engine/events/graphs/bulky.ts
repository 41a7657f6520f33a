/** Emits `count` custom events of `bytes` each, in one node. */
import { Annotation, END, START, StateGraph, type LangGraphRunnableConfig } from "@langchain/langgraph";

const State = Annotation.Root({ count: Annotation<number>(), bytes: Annotation<number>() });

export const graph = new StateGraph(State)
  .addNode("emit", ({ count, bytes }, config: LangGraphRunnableConfig) => {
    for (let event = 0; event < count; event += 1) config.writer?.(String(event).padEnd(bytes, "."));
    return {};
  })
  .addEdge(START, "emit")
  .addEdge("emit", END)
  .compile();
