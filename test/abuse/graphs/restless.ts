/** A loop that waits for nothing, as one gets that an end is missing in: it goes on until its `recursion_limit`. */
import { Annotation, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ count: Annotation<number> });

export const graph = new StateGraph(State)
  .addNode("again", ({ count = 0 }) => ({ count: count + 1 }))
  .addEdge(START, "again")
  .addEdge("again", "again")
  .compile();
