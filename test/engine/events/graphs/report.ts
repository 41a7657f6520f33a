/** The first step makes a report of a megabyte, the others go on with it. */
import { randomBytes } from "node:crypto";
import { Annotation, StateGraph } from "@langchain/langgraph";

const BYTES = 750_000; // a megabyte of base64

const State = Annotation.Root({ report: Annotation<string>(), step: Annotation<number>() });
const next = ({ step }: typeof State.State) => ({ step: step + 1 });

export const graph = new StateGraph(State)
  .addNode("make", () => ({ report: randomBytes(BYTES).toString("base64"), step: 1 }))
  .addNode("a", next)
  .addNode("b", next)
  .addNode("c", next)
  .addNode("d", next)
  .addEdge("__start__", "make")
  .addEdge("make", "a")
  .addEdge("a", "b")
  .addEdge("b", "c")
  .addEdge("c", "d")
  .compile();
