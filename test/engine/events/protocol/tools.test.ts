import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { Command, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { createAgent, tool } from "langchain";
import { expect, test } from "vitest";
import { z } from "zod";
import { ofMethod, publishRun, type PublishedEvents, type PublishedEvent } from "./publish-run.ts";

const INPUT = { messages: [{ role: "user", content: "hello" }] };

type AgentTool = NonNullable<Parameters<typeof createAgent>[0]["tools"]>[number];

/** The events of an agent that calls this tool once. */
const publishTool = async (
  used: AgentTool,
  options: Parameters<typeof publishRun>[2] = {},
): Promise<PublishedEvents> => {
  const model = fakeModel()
    .respondWithTools([{ name: "look_up", args: { word: "sun" }, id: "call_1" }])
    .respond(new AIMessage("done"));
  return await publishRun(createAgent({ model, tools: [used] }).graph, INPUT, options);
};
const LOOK_UP = { name: "look_up", description: "Looks a word up.", schema: z.object({ word: z.string() }) };
const dataOf = (published: PublishedEvents): PublishedEvent["data"][] =>
  ofMethod(published, "tools").map(({ data }) => data);

test("a tool sends its start with its arguments, and its end with the message that answers the call", async () => {
  const published = await publishTool(tool(({ word }: { word: string }) => `${word}: a star`, LOOK_UP));
  expect(dataOf(published)).toEqual([
    { event: "tool-started", tool_call_id: "call_1", tool_name: "look_up", input: { word: "sun" } },
    {
      event: "tool-finished",
      tool_call_id: "call_1",
      output: expect.objectContaining({
        type: "tool",
        content: "sun: a star",
        status: "success",
        tool_call_id: "call_1",
        name: "look_up",
      }),
    },
  ]);
  expect(ofMethod(published, "tools").map(({ namespace, node }) => [namespace, node])).toEqual([
    [[], "tools"],
    [[], "tools"],
  ]);
});

test("the pieces that a tool yields are sent one by one", async () => {
  async function* inPieces({ word }: { word: string }): AsyncGenerator<string, string> {
    yield `${word}: `;
    yield "a star";
    return "done";
  }
  const streaming = tool(inPieces, LOOK_UP);
  const deltas = dataOf(await publishTool(streaming)).filter(({ event }) => event === "tool-output-delta");
  expect(deltas.map(({ delta }) => delta)).toEqual(["sun: ", "a star"]);
});

test("a failed tool sends its error", async () => {
  const published = await publishTool(
    tool(() => {
      throw new Error("no such word");
    }, LOOK_UP),
    { signal: new AbortController().signal },
  );
  expect(dataOf(published)).toContainEqual({
    event: "tool-error",
    tool_call_id: "call_1",
    message: expect.stringContaining("no such word"),
  });
});

test("a tool that a database refuses sends no message of the database", async () => {
  const refused = Object.assign(new Error('relation "secret" does not exist'), {
    code: "42P01",
    routine: "",
  });
  const published = await publishTool(
    tool(() => {
      throw refused;
    }, LOOK_UP),
    { signal: new AbortController().signal },
  );
  expect(dataOf(published)).toContainEqual(
    expect.objectContaining({ event: "tool-error", message: expect.stringMatching(/^A database refused/) }),
  );
});

test("of a command that a tool returns, the message that answers the call is sent", async () => {
  const published = await publishTool(
    tool(
      () =>
        new Command({
          update: { messages: [new ToolMessage({ content: "by command", tool_call_id: "call_1" })] },
        }),
      LOOK_UP,
    ),
  );
  expect(dataOf(published).at(-1)).toMatchObject({
    event: "tool-finished",
    output: { type: "tool", content: "by command", status: "success" },
  });
});

test("a tool that no call has requested is not sent", async () => {
  const direct = tool(({ word }) => word, LOOK_UP);
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("node", async (_, config) => {
      await direct.invoke({ word: "sun" }, config);
      return {};
    })
    .addEdge(START, "node")
    .compile();
  expect(dataOf(await publishRun(graph, INPUT))).toEqual([]);
});
