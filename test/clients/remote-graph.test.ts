import { Command, GraphInterrupt } from "@langchain/langgraph";
import { RemoteGraph } from "@langchain/langgraph/remote";
import { Client } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, expect } from "vitest";
import { feature } from "../compatibility/feature.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";

interface Lifecycle {
  event: string;
  namespace: string[];
}

const HELLO = { messages: [{ role: "user", content: "hello" }] };

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

const remote = (graphId: string): RemoteGraph => new RemoteGraph({ graphId, url: server.url });
const aThread = () => ({ configurable: { thread_id: crypto.randomUUID() } });
const collect = async <Chunk>(chunks: AsyncIterable<Chunk>): Promise<Chunk[]> => {
  const all: Chunk[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
};
const textsOf = (values: unknown): unknown[] =>
  (values as { messages: { content: unknown }[] }).messages.map(({ content }) => content);

const test = (row: string, body: () => Promise<void>): void =>
  feature({ table: "RemoteGraph of JavaScript", row, column: "LangGraph 1.4" }, body);

test("invokes a graph, with a new thread and without one", async () => {
  const graph = remote("two-step");
  expect(textsOf(await graph.invoke(HELLO))).toEqual(["hello", "first", "second"]);
  const config = aThread();
  expect(textsOf(await graph.invoke(HELLO, config))).toEqual(["hello", "first", "second"]);
  expect(textsOf(await graph.invoke(HELLO, config))).toEqual([
    "hello",
    "first",
    "second",
    "hello",
    "first",
    "second",
  ]);
});

test("streams updates, values, messages, and those of subgraphs", async () => {
  const updates = await collect(await remote("two-step").stream(HELLO, { streamMode: "updates" }));
  expect(updates.map((update) => Object.keys(update as object)[0])).toEqual(["first", "second"]);
  const values = await collect(await remote("two-step").stream(HELLO, { streamMode: "values" }));
  expect(values.map((value) => textsOf(value).length)).toEqual([1, 2, 3]);
  const both = (await collect(
    await remote("research").stream(
      { topic: "cats", messages: [] },
      { streamMode: ["updates", "values"], subgraphs: true },
    ),
  )) as [string[], string, unknown][];
  const namespaces = both.map(([namespace]) => namespace.map((part) => part.split(":")[0]).join("|"));
  expect(new Set(namespaces)).toEqual(new Set(["", "investigate"]));
});

test("reads and writes states, and the history", async () => {
  const graph = remote("counter");
  const config = aThread();
  await graph.invoke({ count: 4 }, config);
  const state = await graph.getState(config);
  expect(state.values).toMatchObject({ count: 5 });
  expect(state.next).toEqual([]);
  const updated = await graph.updateState(config, { count: 10 }, "increment");
  expect(updated.configurable).toMatchObject(config.configurable);
  expect((await graph.getState(config)).values).toMatchObject({ count: 15 });
  expect((await graph.getState(state.config)).values).toMatchObject({ count: 5 });
  const history = await collect(graph.getStateHistory(config));
  expect(history.map(({ values }) => (values as { count: number }).count)).toEqual([15, 5, 4, 0]);
  const older = await collect(graph.getStateHistory(config, { before: history[1]?.config, limit: 1 }));
  expect(older.map(({ values }) => (values as { count: number }).count)).toEqual([4]);
});

test("throws at an interrupt of a stream, and resumes", async () => {
  const graph = remote("approval");
  const config = aThread();
  const stopped = await graph.invoke(HELLO, config).catch((error: unknown) => error);
  if (stopped instanceof Error) expect(stopped).toBeInstanceOf(GraphInterrupt);
  const state = await graph.getState(config);
  expect(state.next).toEqual(["review"]);
  expect(state.tasks[0]?.interrupts).toMatchObject([{ value: { question: "Send this draft?" } }]);
  const result = await graph.invoke(new Command({ resume: { decision: "edit", text: "Hi!" } }), config);
  expect(textsOf(result)).toEqual(["hello", "Sent: Hi!"]);
});

test("throws the graph's error", async () => {
  await expect(remote("failing").invoke({ reason: "out of luck" })).rejects.toThrow(/out of luck/);
});

test("draws the graph", async () => {
  const drawing = await remote("research").getGraphAsync({ xray: true });
  expect(Object.keys(drawing.nodes).length).toBeGreaterThan(4);
});

test("streams events of version v3: values, messages, lifecycle, and its output", async () => {
  const run = await remote("tokens").streamEvents(
    { messages: [], tokens: 20 },
    { version: "v3", ...aThread() },
  );
  const texts: string[] = [];
  for await (const message of run.messages) texts.push(await message.text);
  const output = await run.output;
  expect(texts).toEqual([textsOf(output).at(-1)]);
  const ends: unknown[] = [];
  for await (const { event, namespace } of run.lifecycle as unknown as AsyncIterable<Lifecycle>) {
    if (namespace.length === 0) ends.push(event);
    if (event === "completed") break;
  }
  expect(ends).toEqual(["running", "completed"]);
});

test("shows a run's interrupt in version v3, and resumes it", async () => {
  const config = aThread();
  const asking = await remote("approval").streamEvents(HELLO, { version: "v3", ...config });
  await asking.output;
  expect(asking.interrupted).toBe(true);
  expect(asking.interrupts).toMatchObject([{ payload: { question: "Send this draft?" } }]);
  const answer = new Command({ resume: { decision: "approve" } });
  const answered = await remote("approval").streamEvents(answer, { version: "v3", ...config });
  expect(await answered.output).toMatchObject({ status: "sent" });
});

test("stops a run of version v3 when its caller leaves", async () => {
  const config = aThread();
  const client = new Client({ apiUrl: server.url });
  const run = await remote("sleep").streamEvents(
    { messages: [], milliseconds: 600_000 },
    { version: "v3", ...config },
  );
  await expect
    .poll(async () => (await client.threads.get(config.configurable.thread_id)).status)
    .toBe("busy");
  run.abort();
  await expect
    .poll(async () => (await client.runs.list(config.configurable.thread_id))[0]?.status)
    .toBe("interrupted");
});
