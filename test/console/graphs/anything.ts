/** Stores any input, including messages of unknown shapes; with `unstorable` the run fails when its state is stored. */
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  messages: Annotation<unknown>(),
  unstorable: Annotation<unknown>(),
});

const nested = (levels: number): unknown => {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = [value];
  return value;
};

export const graph = new StateGraph(State)
  .addNode("keep", ({ unstorable }) => (unstorable === true ? { unstorable: nested(5_000) } : {}))
  .addEdge(START, "keep")
  .addEdge("keep", END)
  .compile();
