import { Client, type Message } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestServer, type TestServer } from "../helpers/app.ts";

const AGENT_ID = "fe096781-5601-53d2-b2f6-0d3403f7e9ca";
const HELLO = { messages: [{ role: "user", content: "hello" }] };
const LONG = { input: { messages: [], milliseconds: 600_000 } };

let server: TestServer;
let client: Client;
beforeAll(async () => {
  server = await startTestServer();
  client = new Client({ apiUrl: server.url });
});
afterAll(async () => {
  await client.runs.cancelMany({ status: "all" });
  await server.close();
});

const textsOf = (values: unknown): unknown[] =>
  (values as { messages: Message[] }).messages.map(({ content }) => content);
const collect = async <Event>(events: AsyncIterable<Event>): Promise<Event[]> => {
  const all: Event[] = [];
  for await (const event of events) all.push(event);
  return all;
};
const statusOf = (error: unknown): number | undefined => (error as { status?: number }).status;
/** The status by which a call is refused. */
const refusal = async (call: Promise<unknown>): Promise<number | undefined> =>
  await call.then(
    () => undefined,
    (error: unknown) => statusOf(error),
  );

describe("client.assistants", () => {
  test("creates, changes, goes a version back, finds and deletes", async () => {
    const created = await client.assistants.create({
      graphId: "agent",
      name: "tour",
      context: { model_name: "offline", system_prompt: "one" },
      metadata: { tour: "sdk" },
    });
    expect(created).toMatchObject({ graph_id: "agent", name: "tour", version: 1, metadata: { tour: "sdk" } });
    const updated = await client.assistants.update(created.assistant_id, {
      context: { system_prompt: "two" },
    });
    expect(updated).toMatchObject({ version: 2, context: { system_prompt: "two" } });
    expect(updated.context).not.toHaveProperty("model_name");
    const versions = await client.assistants.getVersions(created.assistant_id);
    expect(versions.map(({ version }) => version)).toEqual([2, 1]);
    expect(await client.assistants.setLatest(created.assistant_id, 1)).toMatchObject({
      version: 1,
      context: { system_prompt: "one" },
    });
    expect(await client.assistants.get(created.assistant_id)).toMatchObject({ version: 1 });
    const found = await client.assistants.search({ metadata: { tour: "sdk" }, includePagination: true });
    expect(found.assistants.map(({ assistant_id }) => assistant_id)).toEqual([created.assistant_id]);
    expect(await client.assistants.count({ metadata: { tour: "sdk" } })).toBe(1);
    await client.assistants.delete(created.assistant_id);
    expect(await refusal(client.assistants.get(created.assistant_id))).toBe(404);
  });

  test("knows the assistant of a graph by the graph's id and by its own, and shows the graph", async () => {
    expect(await client.assistants.get("agent")).toMatchObject({ assistant_id: AGENT_ID, graph_id: "agent" });
    const schemas = await client.assistants.getSchemas(AGENT_ID);
    expect(schemas).toMatchObject({
      graph_id: "agent",
      context_schema: { properties: { system_prompt: {} } },
    });
    const { nodes, edges } = await client.assistants.getGraph("agent");
    expect(nodes.map(({ id }) => id)).toEqual(
      expect.arrayContaining(["__start__", "agent", "tools", "__end__"]),
    );
    expect(edges.length).toBeGreaterThan(2);
    expect(Object.keys(await client.assistants.getSubgraphs("research", { recurse: true }))).toEqual([
      "investigate",
    ]);
  });
});

describe("client.threads", () => {
  test("creates, changes, finds, copies and deletes", async () => {
    const threadId = crypto.randomUUID();
    const thread = await client.threads.create({ threadId, metadata: { tour: "threads" } });
    expect(thread).toMatchObject({ thread_id: threadId, status: "idle", metadata: { tour: "threads" } });
    expect(await refusal(client.threads.create({ threadId }))).toBe(409);
    expect(await client.threads.create({ threadId, ifExists: "do_nothing" })).toMatchObject({
      thread_id: threadId,
    });
    await client.threads.update(threadId, { metadata: { more: 1 } });
    expect((await client.threads.get(threadId)).metadata).toMatchObject({ tour: "threads", more: 1 });
    await client.runs.wait(threadId, "two-step", { input: HELLO });
    const copy = await client.threads.copy(threadId);
    expect(textsOf((await client.threads.getState(copy.thread_id)).values)).toEqual([
      "hello",
      "first",
      "second",
    ]);
    const found = await client.threads.search({ metadata: { tour: "threads" }, limit: 10 });
    expect(found.map(({ thread_id }) => thread_id).sort()).toEqual([threadId, copy.thread_id].sort());
    expect(await client.threads.count({ metadata: { tour: "threads" } })).toBe(2);
    await client.threads.delete(threadId);
    await client.threads.delete(copy.thread_id);
    expect(await refusal(client.threads.get(threadId))).toBe(404);
  });

  test("reads and writes states, now and in the past", async () => {
    const { thread_id: threadId } = await client.threads.create();
    await client.runs.wait(threadId, "counter", { input: { count: 4 } });
    const state = await client.threads.getState<{ count: number }>(threadId);
    expect(state).toMatchObject({ values: { count: 5 }, next: [] });
    const updated = await client.threads.updateState(threadId, {
      values: { count: 10 },
      asNode: "increment",
    });
    expect(updated.configurable).toMatchObject({ thread_id: threadId });
    expect((await client.threads.getState<{ count: number }>(threadId)).values.count).toBe(15);
    const id = state.checkpoint.checkpoint_id as string;
    expect((await client.threads.getState<{ count: number }>(threadId, id)).values.count).toBe(5);
    expect((await client.threads.getState<{ count: number }>(threadId, state.checkpoint)).values.count).toBe(
      5,
    );
    const history = await client.threads.getHistory<{ count: number }>(threadId, { limit: 2 });
    expect(history.map(({ values }) => values.count)).toEqual([15, 5]);
    const rest = await client.threads.getHistory(threadId, {
      before: history[1]?.checkpoint && {
        configurable: { checkpoint_id: history[1].checkpoint.checkpoint_id },
      },
    });
    expect(rest.length).toBeGreaterThan(0);
    expect(rest[0]?.checkpoint.checkpoint_id).not.toBe(id);
  });

  test("replays given states", async () => {
    const { thread_id: threadId } = await client.threads.create({
      graphId: "counter",
      supersteps: [
        { updates: [{ values: { count: 2 }, asNode: "increment" }] },
        { updates: [{ values: { count: 3 }, asNode: "increment" }] },
      ],
    });
    expect((await client.threads.getState<{ count: number }>(threadId)).values.count).toBe(5);
  });
});

describe("client.runs", () => {
  test("creates, gets, lists, joins and deletes", async () => {
    const { thread_id: threadId } = await client.threads.create();
    let announced: unknown;
    const run = await client.runs.create(threadId, AGENT_ID, {
      input: { messages: [{ role: "user", content: "What is the weather in Paris?" }] },
      metadata: { tour: true },
      onRunCreated: (created) => (announced = created),
    });
    expect(announced).toEqual({ run_id: run.run_id, thread_id: threadId });
    const values = (await client.runs.join(threadId, run.run_id)) as { messages: Message[] };
    expect(values.messages.map(({ type }) => type)).toEqual(["human", "ai", "tool", "ai"]);
    expect(await client.runs.get(threadId, run.run_id)).toMatchObject({
      status: "success",
      metadata: { tour: true },
    });
    expect(await client.runs.list(threadId, { status: "success", select: ["run_id", "status"] })).toEqual([
      { run_id: run.run_id, status: "success" },
    ]);
    await client.runs.delete(threadId, run.run_id);
    expect(await client.runs.list(threadId)).toEqual([]);
  });

  test("waits, with and without a thread, and throws what the graph threw unless told not to", async () => {
    expect(textsOf(await client.runs.wait(null, "two-step", { input: HELLO }))).toEqual([
      "hello",
      "first",
      "second",
    ]);
    await expect(client.runs.wait(null, "failing", { input: { reason: "out of luck" } })).rejects.toThrow(
      "out of luck",
    );
    expect(
      await client.runs.wait(null, "failing", { input: { reason: "out of luck" }, raiseError: false }),
    ).toMatchObject({
      __error__: { error: "Error", message: "out of luck" },
    });
  });

  test("streams, with and without a thread, and names the run before the first event", async () => {
    const { thread_id } = await client.threads.create();
    for (const threadId of [thread_id, null]) {
      let announced: { run_id: string; thread_id?: string } | undefined;
      const options = {
        input: HELLO,
        streamMode: ["updates", "messages-tuple"] as ("updates" | "messages-tuple")[],
        onRunCreated: (run: { run_id: string; thread_id?: string }) => (announced = run),
      };
      const events = await collect(
        threadId === null
          ? client.runs.stream(null, "two-step", options)
          : client.runs.stream(threadId, "two-step", options),
      );
      expect(events[0]).toMatchObject({ event: "metadata", data: { run_id: announced?.run_id } });
      expect(announced?.thread_id).toMatch(/^[0-9a-f-]{36}$/);
      expect(
        events.filter(({ event }) => event === "updates").map(({ data }) => Object.keys(data as object)[0]),
      ).toEqual(["first", "second"]);
      expect(events.filter(({ event }) => (event as string) === "messages").length).toBeGreaterThan(0);
    }
  });

  test("shows an error as an event", async () => {
    const events = await collect(
      client.runs.stream(null, "failing", { input: { reason: "out of luck" }, streamMode: "values" }),
    );
    expect(events.at(-1)).toMatchObject({ event: "error", data: { error: "Error", message: "out of luck" } });
  });

  test("refuses a second run, once and without trying again", async () => {
    const { thread_id: threadId } = await client.threads.create();
    const first = await client.runs.create(threadId, "sleep", LONG);
    const start = performance.now();
    expect(
      await refusal(client.runs.create(threadId, "two-step", { input: HELLO, multitaskStrategy: "reject" })),
    ).toBe(409);
    expect(
      await refusal(
        collect(client.runs.stream(threadId, "two-step", { input: HELLO, multitaskStrategy: "reject" })),
      ),
    ).toBe(409);
    expect(performance.now() - start).toBeLessThan(1_000);
    expect(await client.runs.list(threadId)).toHaveLength(1);
    await client.runs.cancel(threadId, first.run_id, true);
    expect(await client.runs.get(threadId, first.run_id)).toMatchObject({ status: "interrupted" });
    await client.runs.cancel(threadId, first.run_id);
  });

  test("creates batches", async () => {
    const runs = await client.runs.createBatch([
      { assistantId: "sleep", ...LONG, metadata: { index: 0 } },
      { assistantId: "sleep", ...LONG, metadata: { index: 1 } },
    ]);
    expect(runs.map(({ metadata }) => metadata)).toMatchObject([{ index: 0 }, { index: 1 }]);
    expect(new Set(runs.map(({ thread_id }) => thread_id)).size).toBe(2);
    for (const run of runs) await client.runs.cancel(run.thread_id, run.run_id, true);
  });

  test("cancels several", async () => {
    const threads = [await client.threads.create(), await client.threads.create()];
    const runs = [];
    for (const { thread_id } of threads) runs.push(await client.runs.create(thread_id, "sleep", LONG));
    await client.runs.cancelMany({ runIds: runs.map(({ run_id }) => run_id) });
    for (const run of runs) {
      await client.runs.join(run.thread_id, run.run_id);
      expect(await client.runs.get(run.thread_id, run.run_id)).toMatchObject({ status: "interrupted" });
    }
  });

  test("joins a stream: from now on, from an event, from the start", async () => {
    const { thread_id: threadId } = await client.threads.create();
    const run = await client.runs.create(threadId, "ten-steps", {
      input: {},
      streamMode: "updates",
      streamResumable: true,
    });
    await client.runs.join(threadId, run.run_id);
    const all = await collect(client.runs.joinStream(threadId, run.run_id, { lastEventId: "-1" }));
    expect(all.map(({ id }) => id)).toEqual(Array.from({ length: 11 }, (_, index) => String(index)));
    const rest = await collect(
      client.runs.joinStream(threadId, run.run_id, { lastEventId: "7", streamMode: ["updates"] }),
    );
    expect(rest).toEqual(all.slice(8));
    expect(await collect(client.runs.joinStream(null, run.run_id, { lastEventId: "8" }))).toEqual(
      all.slice(9),
    );
    expect(await refusal(collect(client.runs.joinStream(threadId, crypto.randomUUID())))).toBe(404);
  });

  test("cancels a joined stream's run when it leaves, if it says so", async () => {
    const { thread_id: threadId } = await client.threads.create();
    const run = await client.runs.create(threadId, "sleep", { ...LONG, streamMode: "custom" });
    const leave = new AbortController();
    const joined = client.runs.joinStream(threadId, run.run_id, {
      signal: leave.signal,
      cancelOnDisconnect: true,
    });
    expect(await joined.next()).toMatchObject({ done: false, value: { event: "metadata" } });
    expect(await joined.next()).toMatchObject({ done: false, value: { event: "custom" } });
    expect(await client.runs.get(threadId, run.run_id)).toMatchObject({ status: "running" });
    leave.abort();
    await joined.next().catch(() => undefined);
    await expect
      .poll(async () => (await client.runs.get(threadId, run.run_id)).status, { timeout: 5_000 })
      .toBe("interrupted");
  });
});

describe("client.store", () => {
  test("puts, gets, finds and deletes items", async () => {
    const namespace = ["tour", crypto.randomUUID()];
    await client.store.putItem(namespace, "key", { colour: "blue" });
    expect(await client.store.getItem(namespace, "key")).toMatchObject({ value: { colour: "blue" } });
    const { items } = await client.store.searchItems(namespace, { filter: { colour: "blue" } });
    expect(items).toHaveLength(1);
    expect((await client.store.listNamespaces({ prefix: namespace })).namespaces).toEqual([namespace]);
    await client.store.deleteItem(namespace, "key");
    expect(await client.store.getItem(namespace, "key")).toBeNull();
  });
});
