/**
 * A graph whose model streams an answer in pieces. `callback` sets when the model passes a piece to `handleLLMNewToken`, which LangChain
 * leaves to models.
 */
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import type { RunnableConfig } from "@langchain/core/runnables";
import { Annotation, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

export const PIECES = ["one ", "two ", "three ", "four ", "five ", "six ", "seven"];

export type Callback = "never" | "behind" | "before" | "late" | "empty-first";

interface Speech {
  callback: Callback;
  /** The pieces are arguments of a tool call. */
  calls?: boolean;
  /** The model fails after this many pieces. */
  failsBehind?: number;
}

const partOf = (piece: string, index: number, calls: boolean) =>
  calls
    ? {
        content: "",
        tool_call_chunks: [
          {
            type: "tool_call_chunk" as const,
            index: 0,
            args: index === 0 ? `{"said":"${piece}` : index === PIECES.length - 1 ? `${piece}"}` : piece,
            ...(index === 0 ? { id: "call_1", name: "say" } : {}),
          },
        ],
      }
    : { content: piece };

class SpeakingModel extends BaseChatModel {
  constructor(private readonly speech: Speech) {
    super({});
  }

  override _llmType(): string {
    return "speaking";
  }

  override async _generate(messages: BaseMessage[], options: this["ParsedCallOptions"]): Promise<ChatResult> {
    let whole: ChatGenerationChunk | undefined;
    for await (const chunk of this._streamResponseChunks(messages, options))
      whole = whole?.concat(chunk) ?? chunk;
    return { generations: whole ? [whole] : [] };
  }

  override async *_streamResponseChunks(
    _messages: BaseMessage[],
    _options: this["ParsedCallOptions"],
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const { callback, calls = false, failsBehind } = this.speech;
    const call = (text: string, chunk: ChatGenerationChunk) =>
      manager?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, { chunk });
    if (callback === "empty-first")
      yield new ChatGenerationChunk({ text: "", message: new AIMessageChunk("") });
    for (const [index, piece] of PIECES.entries()) {
      if (index === failsBehind) throw new Error("The model has failed.");
      const message = new AIMessageChunk({
        ...partOf(piece, index, calls),
        ...(index === PIECES.length - 1 ? { response_metadata: { finish_reason: "stop" } } : {}),
      });
      const chunk = new ChatGenerationChunk({ text: calls ? "" : piece, message });
      if (callback === "before") await call(piece, chunk);
      yield chunk;
      const isLate = callback === "late" && index >= 3;
      if (callback === "behind" || callback === "empty-first" || isLate) await call(piece, chunk);
    }
  }
}

/** Forwards the stream of another model, without its own callbacks. */
class PassingModel extends BaseChatModel {
  private readonly inner: SpeakingModel;

  constructor({ callback }: Speech) {
    super({});
    this.inner = new SpeakingModel({ callback });
  }

  override _llmType(): string {
    return "passing";
  }

  override async _generate(): Promise<ChatResult> {
    const message = await this.inner.invoke([]);
    return { generations: [{ text: message.text, message }] };
  }

  override async *_streamResponseChunks(): AsyncGenerator<ChatGenerationChunk> {
    for await (const message of await this.inner.stream([]))
      yield new ChatGenerationChunk({ text: message.text, message: new AIMessageChunk({ ...message }) });
  }
}

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  speech: Annotation<Speech & { tags?: string[]; streams?: boolean; passes?: boolean; times?: number }>(),
});

// All runs with the same speech share one model, so an unread run uses a model that a streamed run has used.
const models = new Map<string, BaseChatModel>();
const modelOf = ({ callback, calls, failsBehind, passes }: (typeof State.State)["speech"]): BaseChatModel => {
  const key = JSON.stringify([callback, calls, failsBehind, passes]);
  const model =
    models.get(key) ??
    (passes
      ? new PassingModel({ callback })
      : new SpeakingModel({
          callback,
          ...(calls === undefined ? {} : { calls }),
          ...(failsBehind === undefined ? {} : { failsBehind }),
        }));
  models.set(key, model);
  return model;
};

const answer = async (model: BaseChatModel, streams: boolean, config: RunnableConfig) => {
  if (!streams) return await model.invoke([], config);
  let whole: AIMessageChunk | undefined;
  for await (const chunk of await model.stream([], config))
    whole = whole?.concat(chunk as AIMessageChunk) ?? (chunk as AIMessageChunk);
  return whole;
};

const speaking = new StateGraph(State)
  .addNode("speak", async ({ speech }, config) => {
    const { tags, streams = false, times = 1 } = speech;
    const answers = [];
    for (let time = 0; time < times; time += 1)
      answers.push(await answer(modelOf(speech), streams, { ...config, ...(tags ? { tags } : {}) }));
    return { messages: answers as BaseMessage[] };
  })
  .addEdge(START, "speak");

export const graph = speaking.compile();

/** The same model inside a subgraph. */
export const nested = new StateGraph(State)
  .addNode("inner", speaking.compile())
  .addEdge(START, "inner")
  .compile();
