/** Answers twice, the second time when a test opens the gate. */
import { AIMessage } from "@langchain/core/messages";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { waitAtGate } from "./gate.ts";

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("first", () => ({ messages: [new AIMessage("the first answer")] }))
  .addNode("second", async () => {
    await waitAtGate();
    return { messages: [new AIMessage("the second answer")] };
  })
  .addEdge(START, "first")
  .addEdge("first", "second")
  .compile();
