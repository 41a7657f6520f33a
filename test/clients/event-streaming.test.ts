import type { Client, ThreadStream } from "@langchain/langgraph-sdk";
import type { Channel } from "@langchain/protocol";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { feature } from "../compatibility/feature.ts";
import { apiOf, saying, textsOf } from "../helpers/api.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { CLIENT_GRAPHS } from "./graphs/graphs.ts";
import { columnOf, LINES } from "./lines.ts";
import { clientOf, deltaOf, eventsUntilPause, sessionOf, tokensOf, TRANSPORTS } from "./sessions.ts";

const ALL_CHANNELS: Channel[] = ["values", "updates", "messages", "tools", "custom", "lifecycle", "input"];

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ graphConfigFile: CLIENT_GRAPHS });
});
afterAll(() => server.close());

const all = async <Item>(items: AsyncIterable<Item>): Promise<Item[]> => {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
};

const LINES_AND_TRANSPORTS = LINES.filter(({ eventStreaming }) => eventStreaming).flatMap((line) =>
  TRANSPORTS.map((transport) => ({
    line,
    transport,
    name: `${columnOf(line)}, ${transport}`,
  })),
);

/** The input and the output of the inner graph of `parent`. */
const SAID = Array.from({ length: 40 }, (_, index) => `word${index}`).join(" ");
const REPEATED = `You said: "${SAID}". I have no tools.`;

// Values are requested before the run begins: after its end, the SDK would wait for the next run.
describe.each(LINES_AND_TRANSPORTS)("$name", ({ line, transport, name }) => {
  let client: Client;
  const open: ThreadStream[] = [];
  beforeAll(async () => {
    client = await clientOf(line, server.url);
  });
  const session = (assistantId: string, threadId?: string): ThreadStream => {
    const stream = sessionOf(client, transport, assistantId, threadId);
    open.push(stream);
    return stream;
  };
  const test = (row: string, body: () => Promise<void>): void =>
    feature({ table: "Event streaming: sessions on a thread", row, column: name }, async () => {
      try {
        await body();
      } finally {
        await Promise.all(open.splice(0).map((stream) => stream.close()));
      }
    });

  test("streams the values of a run, and its output", async () => {
    const thread = session("two-step");
    const { run_id: runId = "" } = await thread.run.start({ input: saying("hi") });
    expect(runId).toMatch(/^[0-9a-f-]{36}$/);
    const snapshots = await all(thread.values);
    expect(textsOf((snapshots.at(-1) as { messages: never[] }).messages)).toEqual(["hi", "first", "second"]);
    expect(textsOf(((await thread.output) as { messages: never[] }).messages)).toHaveLength(3);
  });

  test("streams messages token by token", async () => {
    const thread = session("tokens");
    const { messages } = thread;
    await thread.run.start({ input: { messages: [], tokens: 50 } });
    const parts: string[][] = [];
    for await (const message of messages) parts.push(await all(message.text));
    expect(parts.map((texts) => texts.join(""))).toEqual([tokensOf(50)]);
    expect(parts[0]?.length).toBeGreaterThan(10);
  });

  test("streams tool calls with their results", async () => {
    const thread = session("agent");
    const { toolCalls } = thread;
    await thread.run.start({ input: saying("What is 2 + 3?") });
    // The SDK returns a call when it begins, and the same object when it has ended.
    const calls = new Map<string, unknown>();
    for await (const { callId, name: tool, input, output } of toolCalls)
      calls.set(callId, { tool, input, output: JSON.stringify(await output) });
    expect([...calls.values()]).toEqual([
      { tool: "calculate", input: { expression: "2 + 3" }, output: expect.stringContaining("5") },
    ]);
  });

  test("finds subgraphs, and their messages", async () => {
    const thread = session("parent");
    const { subgraphs } = thread;
    await thread.run.start({ input: saying(SAID) });
    const found = [];
    for await (const child of subgraphs) {
      const texts = [];
      for await (const message of child.messages) texts.push(await message.text);
      found.push({ name: child.name, texts });
    }
    expect(found).toEqual([{ name: "child", texts: [REPEATED] }]);
  });

  test("returns custom events by name", async () => {
    const thread = session("dialogue");
    const progress = thread.extensions["progress"] as AsyncIterable<unknown>;
    await thread.run.start({ input: { messages: [], tokens: 3 } });
    expect(await all(progress)).toEqual([{ name: "progress", step: "draft" }]);
  });

  test("stops at an interrupt and continues with the answer", async () => {
    const thread = session("dialogue");
    const events = await thread.subscribe({ channels: ALL_CHANNELS });
    await thread.run.start({ input: { messages: [], tokens: 20 } });
    const before = await eventsUntilPause(events);
    expect(before.map(deltaOf).join("")).toBe(tokensOf(20));
    expect(thread.interrupted).toBe(true);
    expect(thread.interrupts).toMatchObject([{ payload: { question: "Go on?", after: 1 } }]);
    const [{ interruptId, namespace } = { interruptId: "", namespace: [] }] = thread.interrupts;
    await thread.input.respond({ interrupt_id: interruptId, namespace, response: { yes: true } });
    expect((await eventsUntilPause(events)).map(deltaOf).join("")).toBe(tokensOf(20));
    expect((await apiOf(server).state(thread.threadId)).values).toMatchObject({ decision: { yes: true } });
  });

  test("takes the input of a new run as the answer to an interrupt", async () => {
    const thread = session("dialogue");
    const events = await thread.subscribe({ channels: ["lifecycle", "input"] });
    await thread.run.start({ input: { messages: [], tokens: 2 } });
    await eventsUntilPause(events);
    await thread.run.start({ input: { go: "on" } });
    await eventsUntilPause(events);
    expect((await apiOf(server).state(thread.threadId)).values).toMatchObject({ decision: { go: "on" } });
  });

  test("has several turns on one thread, each distinct from the earlier ones", async () => {
    const threadId = crypto.randomUUID();
    for (let turn = 1; turn <= 5; turn += 1) {
      const thread = session("tokens", threadId);
      const { run_id: runId = "" } = await thread.run.start({ input: { messages: [], tokens: 10 + turn } });
      const output = (await thread.output) as { messages: unknown[] };
      // A reader without `since` receives the thread from its beginning, so the test waits for its own run's end, not the first one.
      await apiOf(server).untilRunIs(threadId, runId, "success");
      expect(output.messages.length).toBeLessThanOrEqual(turn);
      await thread.close();
    }
    expect((await apiOf(server).state(threadId)).values.messages).toHaveLength(5);
  });

  test("has several turns in one session", async () => {
    const thread = session("tokens");
    const events = await thread.subscribe({ channels: ["messages", "lifecycle"] });
    for (let turn = 1; turn <= 5; turn += 1) {
      await thread.run.start({ input: { messages: [], tokens: 10 + turn } });
      expect((await eventsUntilPause(events)).map(deltaOf).join("")).toBe(tokensOf(10 + turn));
    }
  });

  test("streams all events in order, none twice", async () => {
    const thread = session("tokens");
    const subscription = await thread.subscribe({ channels: ALL_CHANNELS });
    await thread.run.start({ input: { messages: [], tokens: 100 } });
    const events = await eventsUntilPause(subscription);
    const sequence = events.map(({ seq }) => seq);
    expect(sequence).toEqual([...new Set(sequence)].sort((a, b) => (a ?? 0) - (b ?? 0)));
    expect(new Set(events.map(({ event_id: id }) => id)).size).toBe(events.length);
    expect(events.map(deltaOf).join("")).toBe(tokensOf(100));
    expect(events.at(-1)).toMatchObject({
      method: "lifecycle",
      params: { namespace: [], data: { event: "completed" } },
    });
  });

  test("subscribes to channels and namespaces", async () => {
    const thread = session("parent");
    const below = await thread.subscribe({ channels: ["messages", "lifecycle"], namespaces: [["child"]] });
    const root = await thread.subscribe({ channels: ["messages", "lifecycle"], namespaces: [[]], depth: 0 });
    await thread.run.start({ input: saying(SAID) });
    expect((await eventsUntilPause(below)).map(deltaOf).join("")).toBe(REPEATED);
    expect((await eventsUntilPause(root)).map(deltaOf).join("")).toBe(tokensOf(3));
  });

  test("streams the failure of a run", async () => {
    const thread = session("failing");
    const events = await thread.subscribe({ channels: ["lifecycle"] });
    await thread.run.start({ input: { reason: "out of luck" } });
    expect((await eventsUntilPause(events)).at(-1)).toMatchObject({
      params: { data: { event: "failed", error: expect.stringContaining("out of luck") } },
    });
  });

  test("ends the streams of a cancelled run", async () => {
    const api = apiOf(server);
    const thread = session("sleep");
    const events = await thread.subscribe({ channels: ["lifecycle"] });
    const { run_id: runId = "" } = await thread.run.start({ input: { messages: [], milliseconds: 600_000 } });
    await api.untilRunIs(thread.threadId, runId, "running");
    await api.cancel(thread.threadId, runId);
    const last = (await eventsUntilPause(events)).at(-1);
    expect(["failed", "interrupted"]).toContain((last?.params.data as { event: string }).event);
  });

  test("follows a run that was created as a run, not by a command", async () => {
    const api = apiOf(server);
    const threadId = await api.aThread();
    const thread = session("tokens", threadId);
    const events = await thread.subscribe({ channels: ALL_CHANNELS });
    await api.aRun(threadId, { assistant_id: "tokens", input: { messages: [], tokens: 30 } });
    expect((await eventsUntilPause(events)).map(deltaOf).join("")).toBe(tokensOf(30));
  });

  test("is refused a missing assistant, and an answer without an interrupt", async () => {
    await expect(session("no-such-graph").run.start({ input: saying("hi") })).rejects.toThrow(
      /no-such-graph/,
    );
    const thread = session("two-step");
    await thread.run.start({ input: saying("hi") });
    await thread.output;
    await expect(
      thread.input.respond({ interrupt_id: "none", namespace: [], response: true }),
    ).rejects.toThrow();
  });

  test("reads states and checkpoints, and forks from one", async () => {
    const thread = session("counter");
    const events = await thread.subscribe({ channels: ["lifecycle"] });
    await thread.run.start({ input: { count: 4 } });
    await eventsUntilPause(events);
    expect(await thread.state.get({ namespace: [] })).toMatchObject({ values: { count: 5 } });
    const { checkpoints } = await thread.state.listCheckpoints({ namespace: [] });
    expect(checkpoints.length).toBeGreaterThan(1);
    const oldest = checkpoints.at(-1)?.id ?? "";
    await thread.run.start({ input: { count: 1 }, forkFrom: oldest });
    await eventsUntilPause(events);
    expect((await apiOf(server).state(thread.threadId)).values).toMatchObject({ count: 2 });
  });
});
