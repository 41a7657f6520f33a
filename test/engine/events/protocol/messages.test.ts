import { FakeListChatModel } from "@langchain/core/utils/testing";
import { AIMessage, AIMessageChunk } from "@langchain/core/messages";
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { BaseChatModel, SimpleChatModel } from "@langchain/core/language_models/chat_models";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import { entrypoint, MessagesAnnotation, pushMessage, START, StateGraph, task } from "@langchain/langgraph";
import { expect, test } from "vitest";
import { graph as tokens } from "../../../fixtures/tokens.ts";
import { ofMethod, publishRun, type PublishedEvents } from "./publish-run.ts";

const INPUT = { messages: [{ role: "user", content: "hello" }] };

type Fields = ConstructorParameters<typeof AIMessageChunk>[0];

/** A model that streams these chunks, and then fails if asked to. */
class ScriptedModel extends BaseChatModel {
  constructor(
    private readonly script: readonly Fields[],
    private readonly failure?: string,
  ) {
    super({});
  }

  override _llmType(): string {
    return "scripted";
  }

  override async _generate(): Promise<ChatResult> {
    throw new Error("It only streams.");
  }

  override async *_streamResponseChunks(
    _messages: unknown,
    _options: unknown,
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    for (const fields of this.script) {
      const chunk = new ChatGenerationChunk({ text: "", message: new AIMessageChunk(fields) });
      yield chunk;
      await manager?.handleLLMNewToken("", undefined, undefined, undefined, undefined, { chunk });
    }
    if (this.failure !== undefined) throw new Error(this.failure);
  }
}

/** A model that can't stream. */
class WholeModel extends SimpleChatModel {
  override _llmType(): string {
    return "whole";
  }

  override async _call(): Promise<string> {
    return "whole";
  }
}

/** The events of a graph with this single node. */
const publishNode = async (
  work: (state: typeof MessagesAnnotation.State) => Promise<object>,
  options: Parameters<typeof publishRun>[2] = {},
): Promise<PublishedEvents> =>
  await publishRun(
    new StateGraph(MessagesAnnotation).addNode("model", work).addEdge(START, "model").compile(),
    INPUT,
    options,
  );
const tellModel = (script: readonly Fields[]) =>
  publishNode(async ({ messages }) => ({ messages: [await new ScriptedModel(script).invoke(messages)] }));

/** The events of the channel, without the fields that all events have. */
const published = (all: PublishedEvents) =>
  ofMethod(all, "messages").map(({ data }) => {
    const { id: _, run_id: __, ...fields } = data;
    return fields;
  });

test("a streaming model sends its start, each token, and its end with the whole message", async () => {
  const all = await publishRun(tokens, { ...INPUT, tokens: 3 });
  expect(published(all)).toEqual([
    {
      event: "message-start",
      role: "ai",
      metadata: { langgraph_node: "model", provider: "TokenModel", model_type: "chat" },
    },
    { event: "content-block-start", index: 0, content: { type: "text", text: "" } },
    { event: "content-block-delta", index: 0, delta: { type: "text-delta", text: "t0 " } },
    { event: "content-block-delta", index: 0, delta: { type: "text-delta", text: "t1 " } },
    { event: "content-block-delta", index: 0, delta: { type: "text-delta", text: "t2 " } },
    { event: "content-block-finish", index: 0, content: { type: "text", text: "t0 t1 t2 " } },
    { event: "message-finish" },
  ]);
  const events = ofMethod(all, "messages");
  const [{ content: [last] = [] }] = ofMethod(all, "values")
    .slice(-1)
    .map(({ data }) => ({ content: (data["messages"] as { id: string }[]).slice(-1) })) as [
    { content: { id: string }[] },
  ];
  expect(new Set(events.map(({ data }) => data["id"]))).toEqual(new Set([last?.id]));
  expect(new Set(events.map(({ data }) => data["run_id"])).size).toBe(1);
  expect(new Set(events.map(({ namespace, node }) => JSON.stringify([namespace, node])))).toEqual(
    new Set(['[[],"model"]']),
  );
});

test("three parallel runs lose none of 200 tokens, and send each once and in order", async () => {
  const all = await Promise.all(
    Array.from({ length: 3 }, () => publishRun(tokens, { ...INPUT, tokens: 200 })),
  );
  const expected = Array.from({ length: 200 }, (_, index) => `t${index} `);
  for (const one of all) {
    const texts = published(one).flatMap((data) =>
      data["event"] === "content-block-delta" ? [(data["delta"] as { text: string }).text] : [],
    );
    expect(texts).toEqual(expected);
  }
});

test("models that stream at the same time in one node are distinguished by id and call", async () => {
  const all = await publishNode(async ({ messages }) => ({
    messages: await Promise.all(
      ["ab", "cd"].map((text) => new FakeListChatModel({ responses: [text], sleep: 1 }).invoke(messages)),
    ),
  }));
  const events = ofMethod(all, "messages");
  const texts = new Map<string, string>();
  for (const { data } of events) {
    if (data["event"] !== "content-block-delta") continue;
    const key = `${String(data["id"])} ${String(data["run_id"])}`;
    texts.set(key, (texts.get(key) ?? "") + (data["delta"] as { text: string }).text);
  }
  expect([...texts.values()].sort()).toEqual(["ab", "cd"]);
  expect(events.filter(({ data }) => data["event"] === "message-finish")).toHaveLength(2);
});

test("a message finishes when its model finishes, not when its node returns", async () => {
  const order: string[] = [];
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("model", async ({ messages }, { writer }) => {
      const answer = await new FakeListChatModel({ responses: ["x"] }).invoke(messages);
      writer?.({ name: "afterwards" });
      return { messages: [answer] };
    })
    .addEdge(START, "model")
    .compile();
  for (const { method, data } of (await publishRun(graph, INPUT)).protocol) {
    if (method === "messages" || method === "custom") order.push(String(data["event"] ?? data["name"]));
  }
  expect(order.slice(-2)).toEqual(["message-finish", "afterwards"]);
});

test("an answer of a non-streaming model is sent once, and a message that a node only returns is not sent", async () => {
  const whole = await publishNode(async ({ messages }) => ({
    messages: [
      await new WholeModel({}).invoke(messages),
      new AIMessage({ id: "returned", content: "returned" }),
    ],
  }));
  expect(published(whole).map(({ event }) => event)).toEqual([
    "message-start",
    "content-block-start",
    "content-block-delta",
    "content-block-finish",
    "message-finish",
  ]);
  expect(published(whole)[3]?.["content"]).toEqual({ type: "text", text: "whole" });
});

test("a message that a node pushes is sent whole", async () => {
  const all = await publishNode(async () => {
    pushMessage({ id: "pushed", role: "assistant", content: "by hand" });
    return {};
  });
  expect(published(all).map(({ event }) => event)).toContain("message-finish");
  expect(ofMethod(all, "messages")[0]?.data["id"]).toBe("pushed");
});

test("tool calls are sent in pieces, and end as objects or as invalid calls", async () => {
  const piece = (index: number, args: string, first: { id?: string; name?: string } = {}): Fields => ({
    content: "",
    tool_call_chunks: [{ type: "tool_call_chunk", index, args, ...first }],
  });
  const all = await tellModel([
    { content: "I look it up." },
    piece(0, "", { id: "call_1", name: "search" }),
    piece(0, '{"q":'),
    piece(0, '"x"}'),
    piece(1, "{oops", { id: "call_2", name: "search" }),
  ]);
  const blocks = published(all).filter(({ event }) => event === "content-block-finish");
  expect(blocks.map(({ index, content }) => [index, content])).toEqual([
    [0, { type: "text", text: "I look it up." }],
    [1, { type: "tool_call", id: "call_1", name: "search", args: { q: "x" } }],
    [2, expect.objectContaining({ type: "invalid_tool_call", id: "call_2", name: "search", args: "{oops" })],
  ]);
  const deltas = published(all).filter(({ event, index }) => event === "content-block-delta" && index === 1);
  expect(deltas.map(({ delta }) => delta)).toEqual([
    { type: "tool-call-delta", args: '{"q":' },
    { type: "tool-call-delta", args: '"x"}' },
  ]);
});

test("reasoning and text are separate, in every provider's form", async () => {
  const anthropic = { response_metadata: { model_provider: "anthropic" } };
  const all = await tellModel([
    { content: [{ type: "thinking", thinking: "Hm", index: 0 }], ...anthropic },
    { content: [{ type: "thinking", thinking: "m.", index: 0 }], ...anthropic },
    { content: [{ type: "text", text: "Yes", index: 1 }], ...anthropic },
  ]);
  expect(published(all).flatMap(({ delta }) => (delta === undefined ? [] : [delta]))).toEqual([
    { type: "reasoning-delta", reasoning: "Hm" },
    { type: "reasoning-delta", reasoning: "m." },
    { type: "text-delta", text: "Yes" },
  ]);
  expect(
    published(all)
      .filter(({ event }) => event === "content-block-finish")
      .map(({ content }) => content),
  ).toMatchObject([
    { type: "reasoning", reasoning: "Hmm." },
    { type: "text", text: "Yes" },
  ]);
});

test("the end of a message contains its usage and why it ended", async () => {
  const usage = (input: number, output: number) => ({
    input_tokens: input,
    output_tokens: output,
    total_tokens: input + output,
  });
  const all = await tellModel([
    { content: "a", usage_metadata: usage(5, 1) },
    { content: "b", usage_metadata: usage(0, 1), response_metadata: { finish_reason: "stop" } },
  ]);
  expect(published(all).at(-1)).toEqual({
    event: "message-finish",
    reason: "stop",
    usage: usage(5, 2),
    metadata: { finish_reason: "stop" },
  });
});

test("a model that fails in the middle of a message ends the message with the error", async () => {
  const all = await publishNode(
    async ({ messages }) => ({
      messages: [await new ScriptedModel([{ content: "half" }], "overloaded").invoke(messages)],
    }),
    { signal: new AbortController().signal },
  );
  expect(published(all).at(-1)).toEqual({ event: "error", message: "overloaded" });
});

test("messages tagged as not streamed are not sent", async () => {
  const all = await publishNode(async ({ messages }) => ({
    messages: [
      await new FakeListChatModel({ responses: ["quiet"] }).invoke(messages, { tags: ["nostream"] }),
    ],
  }));
  expect(published(all)).toEqual([]);
});

test("the messages of a model in a task of the functional API have the root's namespace", async () => {
  const ask = task("ask", async (text: string) => {
    await new FakeListChatModel({ responses: ["hey"] }).invoke(text);
    return text;
  });
  const all = await publishRun(
    entrypoint("main", async () => await ask("a")),
    INPUT,
  );
  expect(new Set(ofMethod(all, "messages").map(({ namespace }) => namespace.length))).toEqual(new Set([0]));
  expect(ofMethod(all, "lifecycle")).toEqual([]);
});
