/** A loop without a wait or an end, as in a common mistake: it continues until its `recursion_limit`. */
import { Annotation, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ count: Annotation<number> });

export const graph = new StateGraph(State)
  .addNode("again", ({ count = 0 }) => ({ count: count + 1 }))
  .addEdge(START, "again")
  .addEdge("again", "again")
  .compile();
