/** A chat model for a start without a key: it answers by rules, word by word. Delete it once ./model.ts has a real one. */
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { BaseChatModel, type BindToolsInput } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";

/** A text, or the tools that are to be called. */
export type Answer = string | { name: string; args: object }[];

const WORD_MS = 20;

export class OfflineModel extends BaseChatModel {
  private readonly answerTo: (messages: BaseMessage[]) => Answer;

  constructor(answerTo: (messages: BaseMessage[]) => Answer) {
    super({});
    this.answerTo = answerTo;
  }

  override _llmType(): string {
    return "offline";
  }

  /** The rules know the tools. */
  override bindTools(_tools: BindToolsInput[]): this {
    return this;
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this["ParsedCallOptions"],
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const id = randomUUID(); // of the message, so of each of its parts
    const response_metadata = { model_name: "offline", model_provider: "offline" };
    const answer = this.answerTo(messages);
    const parts =
      typeof answer === "string"
        ? answer.split(/(?<=\s)/).map((content) => ({ content }))
        : [{ content: "", tool_call_chunks: answer.map(toolCall) }];
    for (const [index, part] of parts.entries()) {
      const message = new AIMessageChunk({
        id,
        ...part,
        ...(index === 0 && { response_metadata }),
        ...(index === parts.length - 1 && { usage_metadata: usage(messages, parts.length) }),
      });
      const chunk = new ChatGenerationChunk({ text: message.text, message });
      yield chunk;
      await manager?.handleLLMNewToken(message.text, undefined, undefined, undefined, undefined, { chunk });
      await pause(WORD_MS, undefined, { signal: options.signal });
    }
  }

  override async _generate(
    messages: BaseMessage[],
    options: this["ParsedCallOptions"],
    manager?: CallbackManagerForLLMRun,
  ): Promise<ChatResult> {
    let whole: ChatGenerationChunk | undefined;
    for await (const chunk of this._streamResponseChunks(messages, options, manager))
      whole = whole?.concat(chunk) ?? chunk;
    return { generations: whole === undefined ? [] : [whole] };
  }
}

const toolCall = ({ name, args }: { name: string; args: object }, index: number) => ({
  type: "tool_call_chunk" as const,
  id: `call_${randomUUID()}`,
  name,
  args: JSON.stringify(args),
  index,
});

/** The tokens of this model are words. */
const usage = (messages: BaseMessage[], output_tokens: number) => {
  const input_tokens = messages.flatMap(({ text }) => text.match(/\S+/g) ?? []).length;
  return { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens };
};
