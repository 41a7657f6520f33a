/** A model streams a draft, a tool's answer and a second model follow, and the last message has blocks. */
import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { TokenModel } from "../../../fixtures/tokens.ts";

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("draft", async ({ messages }, config) => ({
    messages: [await new TokenModel(3).invoke(messages, config)],
  }))
  .addNode("tool", () => ({ messages: [new ToolMessage({ content: "from a tool", tool_call_id: "1" })] }))
  .addNode("final", async ({ messages }, config) => ({
    messages: [await new TokenModel(5).invoke(messages, config)],
  }))
  .addNode("blocks", () => ({
    messages: [
      new AIMessage({
        content: [
          { type: "text", text: "In " },
          { type: "text", text: "blocks." },
        ],
      }),
    ],
  }))
  .addEdge(START, "draft")
  .addEdge("draft", "tool")
  .addEdge("tool", "final")
  .addEdge("final", "blocks")
  .addEdge("blocks", END)
  .compile();
