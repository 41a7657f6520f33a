/** Answers each message after a test has opened the gate. */
import { AIMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { waitAtGate } from "./gate.ts";

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("answer", async ({ messages }) => {
    await waitAtGate();
    return { messages: [new AIMessage(`Heard: ${messages.at(-1)?.text ?? ""}`)] };
  })
  .addEdge(START, "answer")
  .addEdge("answer", END)
  .compile();
