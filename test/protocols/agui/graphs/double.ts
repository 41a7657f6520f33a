/** A graph without messages. */
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ number: Annotation<number>(), doubled: Annotation<number>() });

export const graph = new StateGraph(State)
  .addNode("double", ({ number }) => ({ doubled: 2 * number }))
  .addEdge(START, "double")
  .addEdge("double", END)
  .compile();
