/** Writes so many events in one step, without waiting for anything. */
import { Annotation, END, START, StateGraph, type LangGraphRunnableConfig } from "@langchain/langgraph";

const State = Annotation.Root({ count: Annotation<number> });

export const graph = new StateGraph(State)
  .addNode("write", ({ count }, { writer }: LangGraphRunnableConfig) => {
    for (let written = 0; written < count; written += 1) writer?.({ written });
    return {};
  })
  .addEdge(START, "write")
  .addEdge("write", END)
  .compile();
