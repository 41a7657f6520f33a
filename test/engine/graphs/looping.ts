/**
 * Goes round for ever without waiting for anything, as far as its recursion limit lets it; `bulk` (characters) is what
 * each round writes into the state.
 */
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
