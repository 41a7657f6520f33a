import { AIMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { Command, interrupt, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { createAgent, tool } from "langchain";
import { expect, test } from "vitest";
import { z } from "zod";
import { createProtocolConverter } from "../../../../src/engine/events/protocol/converter.ts";
import { ofMethod, publishRun, type PublishedEvents } from "./publish-run.ts";

const INPUT = { messages: [{ role: "user", content: "hello" }] };

type Work = (state: typeof MessagesAnnotation.State) => Promise<object> | object;

const aGraph = (name: string, work: Work) =>
  new StateGraph(MessagesAnnotation).addNode(name, work).addEdge(START, name);
const around = (inner: unknown) =>
  new StateGraph(MessagesAnnotation).addNode("team", inner as typeof speaking).addEdge(START, "team");

/** Paths without task ids, with their events. */
const lifecycleOf = (published: PublishedEvents) =>
  ofMethod(published, "lifecycle").map(({ namespace, data }) => [
    namespace.map((segment) => segment.split(":")[0]).join("/"),
    data["event"],
  ]);

const speaking = aGraph("speak", async ({ messages }) => ({
  messages: [await new FakeListChatModel({ responses: ["yes"] }).invoke(messages)],
})).compile();

test("a subgraph starts before its first event, and completes with its node", async () => {
  const published = await publishRun(around(speaking).compile(), INPUT);
  expect(lifecycleOf(published)).toEqual([
    ["team", "started"],
    ["team", "completed"],
  ]);
  const [started] = ofMethod(published, "lifecycle");
  expect(started?.data).toEqual({ event: "started", graph_name: "team" });
  const inside = published.protocol.filter(({ namespace }) => namespace.length > 0);
  expect(inside[0]).toEqual({ ...started, timestamp: inside[0]?.timestamp });
  expect(new Set(inside.map(({ namespace }) => JSON.stringify(namespace))).size).toBe(1);
  expect(new Set(inside.map(({ method }) => method))).toEqual(
    new Set(["lifecycle", "checkpoints", "values", "tasks", "messages", "updates"]),
  );
  expect(inside.filter(({ method }) => method === "messages").every(({ node }) => node === "speak")).toBe(
    true,
  );
});

test("nested graphs complete from the inside out", async () => {
  const published = await publishRun(around(around(speaking).compile()).compile(), INPUT);
  expect(lifecycleOf(published)).toEqual([
    ["team", "started"],
    ["team/team", "started"],
    ["team/team", "completed"],
    ["team", "completed"],
  ]);
});

test("a failed subgraph has the status failed", async () => {
  const failing = aGraph("fail", () => {
    throw new Error("boom");
  }).compile();
  const published = await publishRun(around(failing).compile(), INPUT, {
    signal: new AbortController().signal,
  });
  expect(lifecycleOf(published)).toEqual([
    ["team", "started"],
    ["team", "failed"],
  ]);
});

test("a graph with an interrupt is interrupted, and starts again with the answer", async () => {
  const asking = aGraph("ask", () => ({ messages: [interrupt("sure?") as string] })).compile();
  const graph = around(asking).compile({ checkpointer: new MemorySaver() });
  const thread = { configurable: { thread_id: "1" } };
  expect(lifecycleOf(await publishRun(graph, INPUT, thread))).toEqual([
    ["team", "started"],
    ["team", "interrupted"],
  ]);
  expect(lifecycleOf(await publishRun(graph, new Command({ resume: "yes" }), thread))).toEqual([
    ["team", "started"],
    ["team", "completed"],
  ]);
});

test("the second graph that a node calls is distinct from the first", async () => {
  const twice = aGraph("team", async (state) => {
    await speaking.invoke(state);
    return await speaking.invoke(state);
  }).compile();
  const published = await publishRun(twice, INPUT);
  expect(lifecycleOf(published)).toEqual([
    ["team", "started"],
    ["team/1", "started"],
    ["team/1", "completed"],
    ["team", "completed"],
  ]);
  expect(new Set(ofMethod(published, "lifecycle").map(({ data }) => data["graph_name"]))).toEqual(
    new Set(["team"]),
  );
});

test("an agent called by a tool has its own name, and names its tool call", async () => {
  const researcher = createAgent({
    model: fakeModel().respond(new AIMessage("because")),
    tools: [],
    name: "researcher",
  });
  const ask = tool(
    async ({ question }) => {
      const { messages } = await researcher.invoke({ messages: [{ role: "user", content: question }] });
      return messages.at(-1)?.text ?? "";
    },
    { name: "ask", description: "Asks.", schema: z.object({ question: z.string() }) },
  );
  const boss = createAgent({
    model: fakeModel()
      .respondWithTools([{ name: "ask", args: { question: "why" }, id: "call_1" }])
      .respond(new AIMessage("I see")),
    tools: [ask],
    name: "boss",
  });
  const published = await publishRun(boss.graph, INPUT);
  expect(ofMethod(published, "lifecycle").map(({ data }) => data)).toEqual([
    {
      event: "started",
      graph_name: "researcher",
      cause: { type: "toolCall", tool_call_id: "call_1" },
    },
    { event: "completed", graph_name: "researcher" },
  ]);
});

test("each values event follows the small form of its checkpoint", async () => {
  const graph = aGraph("node", () => ({ messages: ["x"] })).compile({ checkpointer: new MemorySaver() });
  for (const stream_mode of [[], ["checkpoints"]]) {
    const published = await publishRun(graph, INPUT, {
      configurable: { thread_id: `thread ${String(stream_mode)}` },
      asked: { stream_mode, stream_subgraphs: false },
    });
    const order = published.protocol
      .map(({ method }) => method)
      .filter((method) => /values|checkpoints/.test(method));
    expect(order).toEqual(["checkpoints", "values", "checkpoints", "values"]);
    const [first, second] = ofMethod(published, "checkpoints").map(({ data }) => data);
    expect(Object.keys(second ?? {}).sort()).toEqual(["id", "parent_id", "source", "step"]);
    expect(second).toMatchObject({ parent_id: first?.["id"], source: "loop", step: 1 });
  }
});

test("thousands of subgraphs within one graph take no longer each than a few", async () => {
  const published: string[] = [];
  const { convert } = createProtocolConverter((event) => void published.push(event), false);
  const graphs = 20_000;
  for (let index = 0; index < graphs; index += 1) {
    const path = [`team:${index}`];
    convert([[], "tasks", { id: String(index), name: "team", input: {} }]);
    convert([path, "tasks", { id: `in ${index}`, name: "speak", input: {} }]);
    convert([[], "updates", { team: {} }]);
    convert([[], "tasks", { id: String(index), name: "team", result: {}, interrupts: [] }]);
  }
  expect(published.filter((event) => event === "protocol:lifecycle")).toHaveLength(2 * graphs);
});
