/** Two nodes ask at the same time; the answers are collected. */
import { Annotation, END, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  answers: Annotation<Record<string, unknown>>({
    reducer: (known, added) => ({ ...known, ...added }),
    default: () => ({}),
  }),
});

const ask = (name: string) => () => ({
  answers: { [name]: interrupt({ message: `What about ${name}?`, reason: "question" }) },
});

export const graph = new StateGraph(State)
  .addNode("left", ask("left"))
  .addNode("right", ask("right"))
  .addEdge(START, "left")
  .addEdge(START, "right")
  .addEdge("left", END)
  .addEdge("right", END)
  .compile();
