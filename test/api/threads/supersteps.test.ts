import { Command, MemorySaver, type CompiledStateGraph } from "@langchain/langgraph";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openThreadsRoom, type State, type Thread, type ThreadsRoom } from "./threads-room.ts";

/** Threads created with their states, compared with LangGraph's own result of the same supersteps. */

let room: ThreadsRoom;
beforeAll(async () => {
  room = await openThreadsRoom();
});
afterAll(() => room.close());

interface Update {
  values?: unknown;
  command?: { update?: unknown; goto?: string[] };
  as_node: string;
}

const human = (content: string) => ({ messages: [{ role: "user", content }] });

/** Values and next nodes, the newest first; LangGraph generates the ids of messages. */
const essence = (states: { values: unknown; next: readonly string[]; metadata?: object | undefined }[]) =>
  states.map(({ values, next, metadata }) => {
    const { source, step } = metadata as { source: string; step: number };
    const plain = JSON.parse(
      JSON.stringify(values, (key, value: unknown) =>
        key === "messages" && Array.isArray(value)
          ? (value as { content: unknown }[]).map(({ content }) => content)
          : value,
      ),
    ) as unknown;
    return { values: plain, next, source, step };
  });

/** The history that the library itself writes with its in-memory saver. */
const byLibrary = async (graphId: string, supersteps: readonly Update[][]) => {
  const checkpointer = new MemorySaver();
  const graph = (await room.graphs.resolve(
    graphId,
    {},
    { checkpointer: checkpointer as never },
  )) as unknown as CompiledStateGraph<object, object>;
  const config = { configurable: { thread_id: "1", checkpoint_ns: "" } };
  await graph.bulkUpdateState(
    config,
    supersteps.map((updates) => ({
      updates: updates.map(({ values, command, as_node: asNode }) => ({
        values: command === undefined ? (values ?? null) : new Command(command as never),
        asNode,
      })),
    })) as never,
  );
  const states = [];
  for await (const state of graph.getStateHistory({ configurable: { thread_id: "1" } })) states.push(state);
  return states;
};

const byServer = async (graphId: string, supersteps: readonly Update[][]) => {
  const created = await room.request<Thread>("POST", "/threads", {
    metadata: { graph_id: graphId },
    supersteps: supersteps.map((updates) => ({ updates })),
  });
  expect(created.status, JSON.stringify(created.body)).toBe(200);
  const path = `/threads/${created.body.thread_id}`;
  return (await room.request<State[]>("GET", `${path}/history?limit=1000`)).body;
};

it.each([
  ["supersteps", Array.from({ length: 501 }, () => [{ values: {}, as_node: "first" }])],
  ["updates of one superstep", [Array.from({ length: 501 }, () => ({ values: {}, as_node: "first" }))]],
])("more than 500 %s in one request cause a 422 and create no thread", async (_, supersteps) => {
  const answer = await room.request("POST", "/threads", {
    metadata: { graph_id: "two-step", many: true },
    supersteps: supersteps.map((updates) => ({ updates })),
  });
  expect([answer.status, answer.body]).toEqual([
    422,
    {
      detail:
        "'supersteps': holds more than 500 updates; send the rest to 'POST /threads/{thread_id}/state'.",
    },
  ]);
  const found = await room.request("POST", "/threads/search", { metadata: { many: true } });
  expect(found.body).toEqual([]);
});

describe("creating a thread with supersteps writes the same as LangGraph alone", () => {
  // Long enough to be stored by element.
  const input: Update = { values: human("hello ".repeat(100)), as_node: "__input__" };
  it.each<[string, string, Update[][]]>([
    ["an input", "two-step", [[input]]],
    ["an input and its start", "two-step", [[input], [{ values: human("hello"), as_node: "__start__" }]]],
    ["an input and a node", "two-step", [[input], [{ values: human("one"), as_node: "first" }]]],
    [
      "an input and all that follows",
      "two-step",
      [
        [input],
        [{ values: human("hello"), as_node: "__start__" }],
        [{ values: human("one"), as_node: "first" }],
        [{ values: human("two"), as_node: "second" }],
      ],
    ],
    ["an input and the end", "two-step", [[input], [{ values: null, as_node: "__end__" }]]],
    ["an input and a copy", "two-step", [[input], [{ values: null, as_node: "__copy__" }]]],
    ["two inputs", "two-step", [[input], [{ values: human("again"), as_node: "__input__" }]]],
    [
      "an input for other channels than a node's",
      "counter",
      [
        [{ values: { messages: human("x").messages, count: 5 }, as_node: "__input__" }],
        [{ values: { count: 1 }, as_node: "increment" }],
      ],
    ],
    [
      "a node and an input after it",
      "counter",
      [[{ values: { count: 2 }, as_node: "increment" }], [{ values: { count: 5 }, as_node: "__input__" }]],
    ],
    ["an input and a command", "two-step", [[input], [{ command: { goto: ["second"] }, as_node: "first" }]]],
    [
      "an input of a function and its end",
      "functional",
      [[{ values: "hello", as_node: "__input__" }], [{ values: null, as_node: "__end__" }]],
    ],
    [
      "an input of several branches",
      "fan-out",
      [
        [{ values: { items: ["a", "b"] }, as_node: "__input__" }],
        [{ values: { items: ["a", "b"] }, as_node: "__start__" }],
      ],
    ],
    [
      "several nodes at once",
      "two-step",
      [
        [{ values: human("hello"), as_node: "__start__" }],
        [
          { values: human("one"), as_node: "first" },
          { values: human("two"), as_node: "second" },
        ],
      ],
    ],
  ])("for %s", async (_, graphId, supersteps) => {
    expect(essence(await byServer(graphId, supersteps))).toEqual(
      essence(await byLibrary(graphId, supersteps)),
    );
  });
});
