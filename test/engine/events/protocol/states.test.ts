import { interrupt, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { expect, test } from "vitest";
import { graph as twoStep } from "../../../fixtures/two-step.ts";
import { ofMethod, publishRun } from "./publish-run.ts";

const INPUT = { messages: [{ role: "user", content: "hello" }] };

test("values contain the whole state after the input and after each step, with messages in the usual form", async () => {
  const published = await publishRun(twoStep, INPUT);
  const contents = ofMethod(published, "values").map(({ data }) =>
    (data["messages"] as { type: string; content: string }[]).map(({ type, content }) => [type, content]),
  );
  const [hello, first, second] = [
    ["human", "hello"],
    ["ai", "first"],
    ["ai", "second"],
  ];
  expect(contents).toEqual([[hello], [hello, first], [hello, first, second]]);
});

test("updates contain the node's name and its result", async () => {
  const published = await publishRun(twoStep, INPUT);
  const updates = ofMethod(published, "updates");
  expect(updates.map(({ node, data }) => [node, data["node"]])).toEqual([
    ["first", "first"],
    ["second", "second"],
  ]);
  expect(updates[0]?.data["values"]).toMatchObject({ messages: [{ type: "ai", content: "first" }] });
});

test("interrupts are sent neither as values nor as updates", async () => {
  const asking = new StateGraph(MessagesAnnotation)
    .addNode("ask", () => ({ messages: [interrupt("sure?") as string] }))
    .addEdge(START, "ask")
    .compile({ checkpointer: new MemorySaver() });
  const published = await publishRun(asking, INPUT, { configurable: { thread_id: "1" } });
  expect(JSON.stringify(published.protocol.filter(({ method }) => method !== "tasks"))).not.toContain(
    "sure?",
  );
  expect(ofMethod(published, "values")).toHaveLength(1);
  expect(ofMethod(published, "updates")).toEqual([]);
});

test.each([
  [
    { name: "progress", percent: 50 },
    { name: "progress", percent: 50, payload: { name: "progress", percent: 50 } },
  ],
  [
    { name: "progress", payload: 50 },
    { name: "progress", payload: 50 },
  ],
  ["half", { payload: "half" }],
  [[1, 2], { payload: [1, 2] }],
])(
  "a node's custom write is sent with the node's name, in the form of both clients: %j",
  async (written, data) => {
    const writing = new StateGraph(MessagesAnnotation)
      .addNode("write", (_, { writer }) => {
        writer?.(written);
        return {};
      })
      .addEdge(START, "write")
      .compile();
    expect(ofMethod(await publishRun(writing, INPUT), "custom").map((event) => event.data)).toEqual([data]);
  },
);
