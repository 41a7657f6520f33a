/** Loops without waiting, up to its recursion limit; each round writes `bulk` characters into the state. */
import { Annotation, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  rounds: Annotation<number>({ reducer: (sum, added) => sum + added, default: () => 0 }),
  bulk: Annotation<number>(),
  text: Annotation<string>(),
});

export const graph = new StateGraph(State)
  .addNode("again", ({ rounds, bulk }) => ({ rounds: 1, text: `${rounds} `.padEnd(bulk ?? 0, "x") }))
  .addEdge(START, "again")
  .addEdge("again", "again")
  .compile();
