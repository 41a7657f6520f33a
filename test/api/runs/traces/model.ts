import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";

interface ModelOptions {
  model: string;
  /** Calls that are to be made before the answer. */
  toolCalls?: { name: string; args: Record<string, unknown> }[];
  streams?: boolean;
  fails?: boolean;
  /** The model that answers, and its tokens. */
  answered?: string;
  usage?: typeof USAGE;
}

export const USAGE = {
  input_tokens: 11,
  output_tokens: 7,
  total_tokens: 18,
  input_token_details: { cache_read: 5, cache_creation: 1 },
  output_token_details: { reasoning: 2 },
};

/** Answers "one two three" after one round of tool calls, and reports `USAGE`. */
export class ReportingModel extends BaseChatModel {
  constructor(private readonly options: ModelOptions) {
    super({});
    // LangChain takes a model that has this method for one that streams.
    if (options.streams !== true)
      this._streamResponseChunks = BaseChatModel.prototype._streamResponseChunks.bind(this);
    if (options.streams !== true) this.disableStreaming = true;
  }

  override _llmType(): string {
    return "reporting";
  }

  override getLsParams() {
    return {
      ls_model_type: "chat" as const,
      ls_provider: "tests",
      ls_model_name: this.options.model,
      ls_stop: [],
    };
  }

  private answer(messages: readonly BaseMessage[]) {
    if (this.options.fails === true) throw new Error("the model is not there");
    const { toolCalls = [], model } = this.options;
    const hasResults = messages.some((message) => message.getType() === "tool");
    return {
      content: "one two three",
      tool_calls: hasResults
        ? []
        : toolCalls.map((call, index) => ({ ...call, id: `call-${index}`, type: "tool_call" as const })),
      usage_metadata: this.options.usage ?? USAGE,
      response_metadata: { model_name: this.options.answered ?? `${model}-2026`, finish_reason: "stop" },
    };
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const answer = this.answer(messages);
    return { generations: [{ text: answer.content, message: new AIMessage(answer) }] };
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    _options: this["ParsedCallOptions"],
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const { content, usage_metadata, response_metadata } = this.answer(messages);
    const words = content.split(" ");
    for (const [index, word] of words.entries()) {
      const isLast = index === words.length - 1;
      const message = new AIMessageChunk({
        content: word,
        ...(isLast ? { usage_metadata, response_metadata } : {}),
      });
      const chunk = new ChatGenerationChunk({ text: word, message });
      yield chunk;
      await manager?.handleLLMNewToken(word, undefined, undefined, undefined, undefined, { chunk });
    }
  }
}
