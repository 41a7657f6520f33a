/** A model that thinks before it answers, in the blocks of two providers, and then calls a tool. */
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { SimpleChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk, ToolMessage, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

const PARTS: Partial<Pick<AIMessageChunk, "content" | "tool_call_chunks">>[] = [
  { content: [{ type: "reasoning", reasoning: "Let me ", index: 0 }] },
  { content: [{ type: "thinking", thinking: "think.", index: 0 }] },
  { content: [{ type: "text", text: "I look", index: 1 }] },
  { content: [{ type: "text", text: " it up.", index: 1 }] },
  {
    content: "",
    tool_call_chunks: [{ type: "tool_call_chunk", index: 2, id: "call-1", name: "look_up", args: '{"wo' }],
  },
  { content: "", tool_call_chunks: [{ type: "tool_call_chunk", index: 2, args: 'rd":"x"}' }] },
];

class ThinkingModel extends SimpleChatModel {
  override _llmType(): string {
    return "thinking";
  }

  override async _call(): Promise<string> {
    return "";
  }

  override async *_streamResponseChunks(
    _messages: BaseMessage[],
    _options: this["ParsedCallOptions"],
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    for (const part of PARTS) {
      const message = new AIMessageChunk({ content: "", ...part });
      const chunk = new ChatGenerationChunk({ text: message.text, message });
      yield chunk;
      await manager?.handleLLMNewToken(message.text, undefined, undefined, undefined, undefined, { chunk });
    }
  }
}

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("model", async (state, config) => ({
    messages: [await new ThinkingModel({}).invoke(state.messages, config)],
  }))
  .addNode("tools", () => ({
    messages: [new ToolMessage({ content: "found", tool_call_id: "call-1", name: "look_up" })],
  }))
  .addEdge(START, "model")
  .addEdge("model", "tools")
  .addEdge("tools", END)
  .compile();
