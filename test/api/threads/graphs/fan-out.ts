/**
 * Two parallel branches, one with an interrupt (so the step is half done), a join node, a deferred one, and one whose results are cached by
 * its input.
 */
import { Annotation, END, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  done: Annotation<string[], string[]>({ reducer: (done, added) => [...done, ...added], default: () => [] }),
});

export const graph = new StateGraph(State)
  .addNode("quick", () => ({ done: ["quick"] }))
  .addNode("ask", () => ({ done: [`ask: ${String(interrupt({ question: "Go on?" }))}`] }))
  .addNode("joined", () => ({ done: ["joined"] }))
  .addNode("cached", () => ({ done: ["cached"] }), {
    cachePolicy: { keyFunc: ([state]) => (state as typeof State.State).done.join() },
  })
  .addNode("late", () => ({ done: ["late"] }), { defer: true })
  .addEdge(START, "quick")
  .addEdge(START, "ask")
  .addEdge("quick", "late")
  .addEdge(["quick", "ask"], "joined")
  .addEdge("joined", "cached")
  .addEdge("cached", END)
  .addEdge("late", END)
  .compile();
