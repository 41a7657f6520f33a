/** A chat model for a start without a key: it answers by rules, word by word. Delete it once ./model.js has a real one. */
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";

const WORD_MS = 20;

export class OfflineModel extends BaseChatModel {
  /** `answerTo(messages)`: a text, or a list of the tools that are to be called, each `{ name, args }`. */
  constructor(answerTo) {
    super({});
    this.answerTo = answerTo;
  }

  _llmType() {
    return "offline";
  }

  /** The rules know the tools. */
  bindTools() {
    return this;
  }

  async *_streamResponseChunks(messages, options, manager) {
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

  async _generate(messages, options, manager) {
    let whole;
    for await (const chunk of this._streamResponseChunks(messages, options, manager))
      whole = whole?.concat(chunk) ?? chunk;
    return { generations: whole === undefined ? [] : [whole] };
  }
}

const toolCall = ({ name, args }, index) => ({
  type: "tool_call_chunk",
  id: `call_${randomUUID()}`,
  name,
  args: JSON.stringify(args),
  index,
});

/** The tokens of this model are words. */
const usage = (messages, output_tokens) => {
  const input_tokens = messages.flatMap(({ text }) => text.match(/\S+/g) ?? []).length;
  return { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens };
};
