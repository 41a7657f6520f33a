/** A question two graphs deep: in the node `ask` of `inner`, which is in `outer`. */
import { Annotation, interrupt, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ text: Annotation<string>() });

const inner = new StateGraph(State)
  .addNode("ask", () => ({ text: String(interrupt("Sure?")) }))
  .addEdge(START, "ask")
  .compile();

const outer = new StateGraph(State).addNode("inner", inner).addEdge(START, "inner").compile();

export const graph = new StateGraph(State).addNode("outer", outer).addEdge(START, "outer").compile();
