import { AIMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { Command, interrupt, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { createAgent, tool } from "langchain";
import { expect, test } from "vitest";
import { z } from "zod";
import { publishRun, type PublishedEvents } from "./protocol/publish-run.ts";

/** The mode `lifecycle` of run streams. */

const INPUT = { messages: [{ role: "user", content: "hello" }] };
const LIFECYCLE = {
  asked: { stream_mode: ["lifecycle"], stream_subgraphs: false },
  publishesProtocol: false,
};

type Work = (state: typeof MessagesAnnotation.State) => Promise<object> | object;
const aGraph = (name: string, work: Work) =>
  new StateGraph(MessagesAnnotation).addNode(name, work).addEdge(START, name);
const speaking = aGraph("speak", () => ({ messages: ["yes"] })).compile();
const around = (inner: unknown) =>
  new StateGraph(MessagesAnnotation).addNode("team", inner as typeof speaking).addEdge(START, "team");

interface Lifecycle {
  event: string;
  namespace: string[];
  tool_call_id?: string;
  error?: { error: string; message: string };
}
const publishedBy = ({ first }: PublishedEvents): Lifecycle[] =>
  first.map(([, data]) => JSON.parse(data) as Lifecycle);
/** Paths without task ids. */
const eventsOf = (published: PublishedEvents) =>
  publishedBy(published).map(({ event, namespace }) => [
    namespace.map((part) => part.split(":")[0]).join("/"),
    event,
  ]);

test("subgraphs start and complete, each under its namespace; the root emits no event", async () => {
  const published = await publishRun(around(around(speaking).compile()).compile(), INPUT, LIFECYCLE);
  expect(eventsOf(published)).toEqual([
    ["team", "started"],
    ["team/team", "started"],
    ["team/team", "completed"],
    ["team", "completed"],
  ]);
  for (const [index, [name]] of published.first.entries())
    expect(name).toBe(`lifecycle|${publishedBy(published)[index]?.namespace.join("|")}`);
  expect(Object.keys(publishedBy(published)[0] ?? {})).toEqual(["event", "namespace"]);
  expect((await publishRun(speaking, INPUT, LIFECYCLE)).first).toEqual([]);
});

test("a subgraph's start precedes its events, and its end follows them", async () => {
  const published = await publishRun(around(speaking).compile(), INPUT, {
    asked: { stream_mode: ["values", "updates", "lifecycle", "tasks"], stream_subgraphs: true },
    publishesProtocol: false,
  });
  const inside = published.first.map(([name]) => name).filter((name) => name.includes("|"));
  expect(inside.map((name) => name.split("|")[0])).toEqual([
    "lifecycle",
    "values",
    "tasks",
    "updates",
    "tasks",
    "values",
    "lifecycle",
  ]);
});

test("the other modes stream the same with or without it", async () => {
  const stream_mode = ["values", "updates"];
  const graph = around(speaking).compile();
  const namesOf = async (modes: string[]) =>
    (
      await publishRun(graph, INPUT, { ...LIFECYCLE, asked: { stream_mode: modes, stream_subgraphs: false } })
    ).first
      .map(([name]) => name)
      .filter((name) => !name.startsWith("lifecycle"));
  expect(await namesOf([...stream_mode, "lifecycle"])).toEqual(await namesOf(stream_mode));
});

test("a graph with an interrupt is interrupted", async () => {
  const asking = aGraph("speak", () => ({ messages: [interrupt("sure?") as string] })).compile();
  const graph = around(asking).compile({ checkpointer: new MemorySaver() });
  const thread = { configurable: { thread_id: "1" }, ...LIFECYCLE };
  const ends = [INPUT, new Command({ resume: "yes" })].map(
    (input) => async () => publishRun(graph, input, thread),
  );
  expect(eventsOf(await ends[0]!()).at(-1)).toEqual(["team", "interrupted"]);
  expect(eventsOf(await ends[1]!()).at(-1)).toEqual(["team", "completed"]);
});

test("a graph called by a tool names its tool call, at its start and its end", async () => {
  const ask = tool(async () => (await speaking.invoke(INPUT)).messages.at(-1)?.text ?? "", {
    name: "ask",
    description: "Asks.",
    schema: z.object({}),
  });
  const model = fakeModel()
    .respondWithTools([{ name: "ask", args: {}, id: "call_1" }])
    .respond(new AIMessage("I see"));
  const published = await publishRun(createAgent({ model, tools: [ask] }).graph, INPUT, LIFECYCLE);
  expect(publishedBy(published)).toMatchObject([
    { event: "started", tool_call_id: "call_1" },
    { event: "completed", tool_call_id: "call_1" },
  ]);
});
