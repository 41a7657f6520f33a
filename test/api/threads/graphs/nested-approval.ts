/** A subgraph with an interrupt, inside another graph. */
import { Annotation, END, interrupt, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ text: Annotation<string>() });

const inner = new StateGraph(State)
  .addNode("prepare", ({ text }) => ({ text: `${text}, prepared` }))
  .addNode("confirm", ({ text }) => ({ text: `${text}, ${String(interrupt("Confirm?"))}` }))
  .addEdge(START, "prepare")
  .addEdge("prepare", "confirm")
  .addEdge("confirm", END)
  .compile();

export const graph = new StateGraph(State)
  .addNode("begin", ({ text }) => ({ text: `${text}, begun` }))
  .addNode("inner", inner)
  .addEdge(START, "begin")
  .addEdge("begin", "inner")
  .addEdge("inner", END)
  .compile();
