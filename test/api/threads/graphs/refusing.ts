/**
 * Channels that refuse some writes: `messages` anything but messages, `single` two values in one step, `positive` a value below 1. `write`
 * writes the value of `give`, and `other` writes beside it at the same time.
 */
import { Annotation, END, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  single: Annotation<string>,
  positive: Annotation<number>({
    reducer: (sum, added) => {
      if (!(added > 0)) throw new RangeError(`${added} is not positive`);
      return sum + added;
    },
    default: () => 0,
  }),
  give: Annotation<Record<string, unknown>>,
  count: Annotation<number>({ reducer: (sum, added) => sum + added, default: () => 0 }),
});

export const graph = new StateGraph(State)
  .addNode("write", ({ give }) => (give ?? {}) as Partial<typeof State.State>)
  .addNode("other", () => ({ count: 1 }))
  .addNode("ask", () => ({ messages: [{ role: "user", content: String(interrupt("Go on?")) }] }))
  .addEdge(START, "write")
  .addEdge(START, "other")
  .addConditionalEdges("write", ({ give }) => (give?.ask === true ? "ask" : END), ["ask", END])
  .addEdge("other", END)
  .addEdge("ask", END)
  .compile();
