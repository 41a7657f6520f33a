import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ text: Annotation<string>() });

export const graph = () =>
  new StateGraph(State)
    .addNode("echo", ({ text }) => ({ text: `${text} ${text}` }))
    .addEdge(START, "echo")
    .addEdge("echo", END)
    .compile();
