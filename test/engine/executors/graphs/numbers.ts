/** Makes a list of this many four-digit numbers. */
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ count: Annotation<number>, numbers: Annotation<number[]> });

export const graph = new StateGraph(State)
  .addNode("make", ({ count }) => ({ numbers: Array.from({ length: count }, () => 1_234) }))
  .addEdge(START, "make")
  .addEdge("make", END)
  .compile();
