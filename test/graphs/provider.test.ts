import type { BaseMessage, AIMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { RunnableGraph } from "../../src/graphs/runnable-graph.ts";
import { PATIENTLY } from "../helpers/conditions.ts";
import { createOpenAiServer, type ChatAnswer, type ChatRequest } from "../helpers/openai-server.ts";
import { EXAMPLES, failure, loadConfig } from "./helpers.ts";

/** Asks for the weather, then repeats the tool's answer. */
function answerLikeAModel({ messages, tools = [] }: ChatRequest): ChatAnswer {
  const last = messages.at(-1);
  if (last?.role === "tool") return { content: `The tool says: ${last.content}` };
  if (tools.some((tool) => tool.function.name === "get_weather")) {
    return { toolCalls: [{ id: "call_1", name: "get_weather", args: { place: "Oslo" } }] };
  }
  return { content: "I have no tool for that." };
}

/** The agent, whose client gets the provider's address from the environment, like a user's. */
async function agentWith(answer: (request: ChatRequest) => ChatAnswer, options?: { tokenDelayMs: number }) {
  const provider = await createOpenAiServer(answer, options);
  onTestFinished(() => provider.close());
  vi.stubEnv("OPENAI_BASE_URL", provider.baseUrl);
  vi.stubEnv("OPENAI_API_KEY", "key-of-the-test");
  const graphs = await loadConfig(EXAMPLES, { checkpointer: new MemorySaver() });
  return { provider, graph: await graphs.resolve("agent") };
}

afterEach(() => vi.unstubAllEnvs());

const thread = { configurable: { thread_id: "t" } };
const context = { model_name: "openai:gpt-test", system_prompt: "Be brief." };
const question = { messages: [{ role: "user", content: "What's the weather in Oslo?" }] };
const messagesOf = async (graph: RunnableGraph) =>
  ((await graph.getState(thread)).values as { messages: BaseMessage[] }).messages;

describe("the example agent, with a provider", () => {
  it("calls the model in the context, with its prompt, its tools and the key", async () => {
    const { provider, graph } = await agentWith(answerLikeAModel);
    await graph.invoke(question, { ...thread, context });

    const messages = await messagesOf(graph);
    expect(messages.map(({ type }) => type)).toEqual(["human", "ai", "tool", "ai"]);
    expect((messages[1] as AIMessage).tool_calls).toMatchObject([
      { name: "get_weather", args: { place: "Oslo" } },
    ]);
    expect(messages.at(-1)?.text).toMatch(/^The tool says: It is .* in Oslo/);

    expect(provider.requests).toHaveLength(2);
    expect(provider.requests[0]).toMatchObject({
      model: "gpt-test",
      key: "key-of-the-test",
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "What's the weather in Oslo?" },
      ],
      tools: [{ function: { name: "get_weather" } }, { function: { name: "calculate" } }],
    });
    expect(provider.requests[1]?.messages.at(-1)).toMatchObject({ role: "tool", tool_call_id: "call_1" });
  });

  it("streams the provider's tokens as they arrive, under one id per message", async () => {
    const { provider, graph } = await agentWith(answerLikeAModel);
    const streamed = new Map<string, string[]>();
    for await (const [message] of (await graph.stream(question, {
      ...thread,
      context,
      streamMode: "messages",
    })) as AsyncIterable<[BaseMessage]>) {
      const id = message.id ?? "";
      streamed.set(id, [...(streamed.get(id) ?? []), message.text]);
    }
    expect(provider.requests.map(({ stream }) => stream)).toEqual([true, true]);
    const [, ...answers] = await messagesOf(graph);
    expect([...streamed.keys()]).toEqual(answers.map(({ id }) => id));
    const tokens = (streamed.get(answers.at(-1)?.id ?? "") ?? []).filter(Boolean);
    expect(tokens.length).toBeGreaterThan(5);
    expect(tokens.join("")).toBe(answers.at(-1)?.text);
  });

  it("offers only the tools that the context allows", async () => {
    const { provider, graph } = await agentWith(answerLikeAModel);
    await graph.invoke(question, { ...thread, context: { ...context, tools: [] } });
    expect(provider.requests[0]?.tools).toBeUndefined();
    expect((await messagesOf(graph)).at(-1)?.text).toBe("I have no tool for that.");
  });

  it("ends with the provider's error when the key is refused", async () => {
    const { graph } = await agentWith(() => ({ status: 401, message: "Incorrect API key provided." }));
    const error = await failure(graph.invoke(question, { ...thread, context }));
    expect(error.message).toContain("Incorrect API key provided.");
  });

  it("closes the provider's stream when the run is cancelled", async () => {
    const long = "word ".repeat(5000);
    const { provider, graph } = await agentWith(() => ({ content: long }), { tokenDelayMs: 2 });
    const controller = new AbortController();
    const stream = (await graph.stream(question, {
      ...thread,
      context,
      streamMode: "messages",
      signal: controller.signal,
    })) as AsyncIterable<unknown>;
    let tokens = 0;
    const reading = (async () => {
      for await (const _ of stream) if ((tokens += 1) === 5) controller.abort();
    })();
    expect((await failure(reading)).name).toBe("AbortError");
    await vi.waitFor(() => expect(provider.abandoned).toBe(1), PATIENTLY);
  });
});
