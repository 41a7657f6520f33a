/** A graph with a subgraph, whose second node waits until a test opens the gate. */
import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { waitAtGate } from "./gate.ts";

const State = Annotation.Root({
  text: Annotation<string>(),
  done: Annotation<string[]>({ reducer: (known, added) => [...known, ...added], default: () => [] }),
});

const inner = new StateGraph(State)
  .addNode("prepare", () => ({ done: ["prepare"] }))
  .addNode("wait", async () => {
    await waitAtGate();
    return { text: "through", done: ["wait"] };
  })
  .addEdge(START, "prepare")
  .addEdge("prepare", "wait")
  .compile();

export const graph = new StateGraph(State)
  .addNode("middle", inner)
  .addNode("finish", ({ text }) => ({ text: `${text}!` }))
  .addNode("again", () => ({}))
  .addEdge(START, "middle")
  .addConditionalEdges("middle", () => "finish", { finish: "finish", once_more: "again" })
  .addEdge("again", "finish")
  .compile();
