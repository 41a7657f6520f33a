import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

const failing = new StateGraph(MessagesAnnotation)
  .addNode("fail", () => {
    throw new RangeError("no more");
  })
  .addEdge(START, "fail")
  .compile();

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("team", failing)
  .addEdge(START, "team")
  .compile();
