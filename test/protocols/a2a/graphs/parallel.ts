/** Two nodes ask at the same time, and `say` repeats their answers. */
import { AIMessage } from "@langchain/core/messages";
import { Annotation, END, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  answers: Annotation<string[]>({ reducer: (all, added) => [...all, ...added], default: () => [] }),
});

const asks = (question: string) => () => ({ answers: [`${question}: ${String(interrupt(question))}`] });

export const graph = new StateGraph(State)
  .addNode("size", asks("size"))
  .addNode("colour", asks("colour"))
  .addNode("say", ({ answers }) => ({ messages: [new AIMessage(answers.toSorted().join(", "))] }))
  .addEdge(START, "size")
  .addEdge(START, "colour")
  .addEdge(["size", "colour"], "say")
  .addEdge("say", END)
  .compile();
