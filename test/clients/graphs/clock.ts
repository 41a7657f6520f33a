/** A chat model whose first token is the time of its creation, in milliseconds since 1970. */
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { SimpleChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { setTimeout as pause } from "node:timers/promises";

class ClockModel extends SimpleChatModel {
  override _llmType(): string {
    return "clock";
  }

  override async _call(): Promise<string> {
    return String(Date.now());
  }

  override async *_streamResponseChunks(
    _messages: BaseMessage[],
    _options: this["ParsedCallOptions"],
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    for (const say of [() => String(Date.now()), () => " or so"]) {
      const said = say();
      const chunk = new ChatGenerationChunk({ text: said, message: new AIMessageChunk(said) });
      yield chunk;
      await manager?.handleLLMNewToken(said, undefined, undefined, undefined, undefined, { chunk });
      await pause(20);
    }
  }
}

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("model", async (state, config) => ({
    messages: [await new ClockModel({}).invoke(state.messages, config)],
  }))
  .addEdge(START, "model")
  .addEdge("model", END)
  .compile();
