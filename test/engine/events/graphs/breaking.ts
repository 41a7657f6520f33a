/** Streams `count` events of `bytes` characters in the way that `how` names, then throws. Of tokens only the first is long. */
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { SimpleChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { tool } from "@langchain/core/tools";
import {
  Annotation,
  END,
  interrupt,
  START,
  StateGraph,
  type LangGraphRunnableConfig,
} from "@langchain/langgraph";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

class LongModel extends SimpleChatModel {
  constructor(private readonly state: { count: number; bytes: number }) {
    super({});
  }

  override _llmType(): string {
    return "long";
  }

  override _call(): Promise<string> {
    throw new Error("This model only streams.");
  }

  override async *_streamResponseChunks(
    _messages: BaseMessage[],
    _options: this["ParsedCallOptions"],
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    for (let index = 0; index < this.state.count; index += 1) {
      await turn();
      const text = "x".repeat(index === 0 ? this.state.bytes : 1);
      const chunk = new ChatGenerationChunk({
        text,
        message: new AIMessageChunk({ id: "m", content: text }),
      });
      yield chunk;
      await manager?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, { chunk });
    }
  }
}

const failing = tool(
  () => {
    throw new RangeError("the tool is broken");
  },
  { name: "failing", description: "Always fails." },
);

const refused = tool(
  () => {
    throw Object.assign(new Error('relation "secret" does not exist'), { code: "42P01", routine: "" });
  },
  { name: "refused", description: "A database refuses its statement." },
);

const State = Annotation.Root({
  how: Annotation<"tokens" | "events" | "burst" | "tool" | "database">(),
  count: Annotation<number>(),
  bytes: Annotation<number>(),
  /** Until the run is stopped. */
  stays: Annotation<boolean>(),
});

const breaks = async (
  state: typeof State.State,
  config: LangGraphRunnableConfig,
): Promise<typeof State.Update> => {
  const text = "x".repeat(state.bytes);
  const call = { type: "tool_call", id: "call", args: {} } as const;
  if (state.how === "tool") await failing.invoke({ ...call, name: "failing" }, config);
  if (state.how === "database") await refused.invoke({ ...call, name: "refused" }, config);
  if (state.how === "tokens") for await (const _ of await new LongModel(state).stream("hi", config));
  else
    for (let index = 0; index < state.count; index += 1) {
      if (state.how === "events") await turn();
      config.writer?.({ index, text });
    }
  if (state.stays) await new Promise((resolve) => config.signal?.addEventListener("abort", resolve));
  throw new Error("broken");
};

export const graph = new StateGraph(State)
  .addNode("breaks", breaks)
  .addEdge(START, "breaks")
  .addEdge("breaks", END)
  .compile();

export const nested = new StateGraph(State)
  .addNode("inside", graph)
  .addEdge(START, "inside")
  .addEdge("inside", END)
  .compile();

/** One node asks while the other one streams and fails. */
export const beside = new StateGraph(State)
  .addNode("asks", () => {
    interrupt("go on?");
    return {};
  })
  .addNode("breaks", breaks)
  .addEdge(START, "asks")
  .addEdge(START, "breaks")
  .compile();
