/** A chat model that streams `tokens` tokens (default 6,000: a test stops it earlier), `perSecond` per second (default 60). */
import { setTimeout as pause } from "node:timers/promises";
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { SimpleChatModel, type BaseChatModelCallOptions } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { Annotation, END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

/** A model's typical output: words, sometimes a paragraph, a list, a piece of code. */
const tokenAt = (index: number): string => {
  if (index % 80 === 79) return ".\n\n";
  if (index % 150 === 60) return "\n\n- an item with **bold** words\n- another one\n\n";
  if (index % 240 === 120) return "\n\n```js\nconst answer = 42;\n```\n\n";
  return `token${index} `;
};

export class TypingModel extends SimpleChatModel {
  constructor(
    private readonly count: number,
    private readonly perSecond: number,
  ) {
    super({});
  }

  override _llmType(): string {
    return "typing";
  }

  override async _call(): Promise<string> {
    return Array.from({ length: this.count }, (_, index) => tokenAt(index)).join("");
  }

  override async *_streamResponseChunks(
    _messages: BaseMessage[],
    options: BaseChatModelCallOptions,
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const begun = performance.now();
    for (let index = 0; index < this.count; index += 1) {
      const text = tokenAt(index);
      const chunk = new ChatGenerationChunk({ text, message: new AIMessageChunk(text) });
      yield chunk;
      await manager?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, { chunk });
      const due = begun + ((index + 1) * 1_000) / this.perSecond;
      await pause(Math.max(0, due - performance.now()), undefined, { signal: options.signal });
    }
  }
}

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  tokens: Annotation<number>(),
  perSecond: Annotation<number>(),
});

export const graph = new StateGraph(State)
  .addNode("model", async (state, config) => ({
    messages: [
      await new TypingModel(state.tokens ?? 6_000, state.perSecond ?? 60).invoke(state.messages, config),
    ],
  }))
  .addEdge(START, "model")
  .addEdge("model", END)
  .compile();
