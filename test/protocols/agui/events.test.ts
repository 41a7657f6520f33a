import { describe, expect, test } from "vitest";
import type { Api } from "../../helpers/api.ts";
import { dataOf, namesOf, readStream } from "../../helpers/server-sent-events.ts";
import { onServer } from "../../helpers/servers.ts";
import { AGUI_GRAPHS, aFront, deltasOf, DIALECTS, ofType, typesOf, type Event } from "./clients.ts";

/** The clients verify the order of events: a run that breaks a rule of the protocol rejects. */

let url: string;
let api: Api;
onServer({ graphConfigFile: AGUI_GRAPHS }, (opened) => {
  ({ url } = opened.server);
  ({ api } = opened);
});

const stepsOf = (events: readonly Event[]): unknown[] =>
  events.filter(({ type }) => type.startsWith("STEP_")).map(({ type, stepName }) => [type, stepName]);
const lastOf = (events: readonly Event[]): Event | undefined => events.at(-1);

describe.each(DIALECTS)("a client of %s", (dialect) => {
  const front = (graph: string) => aFront(url, graph, { dialect });

  test("gets each token of a model within one message, and the same message in the snapshot", async () => {
    const page = front("tokens");
    const events = await page.run({ say: "hi", state: { tokens: 3 } });
    expect(typesOf(events)).toEqual([
      "RUN_STARTED",
      "STATE_SNAPSHOT",
      "MESSAGES_SNAPSHOT",
      "STEP_STARTED",
      "TEXT_MESSAGE_START",
      "TEXT_MESSAGE_CONTENT",
      "TEXT_MESSAGE_CONTENT",
      "TEXT_MESSAGE_CONTENT",
      "TEXT_MESSAGE_END",
      "STEP_FINISHED",
      "STATE_SNAPSHOT",
      "MESSAGES_SNAPSHOT",
      "RUN_FINISHED",
    ]);
    expect(deltasOf(events, "TEXT_MESSAGE_CONTENT")).toBe("t0 t1 t2 ");
    const [started] = ofType(events, "TEXT_MESSAGE_START");
    expect(page.messages).toMatchObject([
      { role: "user", content: "hi" },
      { role: "assistant", id: started?.["messageId"], content: "t0 t1 t2 " },
    ]);
    expect(page.state).toEqual({ tokens: 3 });
  });

  test("gets tool calls, their results, and the answer after them", async () => {
    const page = front("agent");
    const events = await page.run({ say: "What is the weather in Paris?" });
    const [call] = ofType(events, "TOOL_CALL_START");
    expect(call).toMatchObject({ toolCallName: "get_weather", parentMessageId: page.messages[1]?.id });
    expect(JSON.parse(deltasOf(events, "TOOL_CALL_ARGS"))).toEqual({ place: "Paris" });
    expect(ofType(events, "TOOL_CALL_RESULT")).toMatchObject([
      { toolCallId: call?.["toolCallId"], content: expect.stringContaining("in Paris"), role: "tool" },
    ]);
    expect(stepsOf(events)).toEqual([
      ["STEP_STARTED", "agent"],
      ["STEP_FINISHED", "agent"],
      ["STEP_STARTED", "tools"],
      ["STEP_FINISHED", "tools"],
      ["STEP_STARTED", "agent"],
      ["STEP_FINISHED", "agent"],
    ]);
    expect(page.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
    expect(page.messages[3]?.content).toBe(page.messages[2]?.content);
  });

  test("gets what a model thinks apart from what it says and calls", async () => {
    const page = front("thinking");
    const events = await page.run({ say: "x" });
    expect(typesOf(events).slice(4, 18)).toEqual([
      "REASONING_START",
      "REASONING_MESSAGE_START",
      "REASONING_MESSAGE_CONTENT",
      "REASONING_MESSAGE_CONTENT",
      "REASONING_MESSAGE_END",
      "REASONING_END",
      "TEXT_MESSAGE_START",
      "TEXT_MESSAGE_CONTENT",
      "TEXT_MESSAGE_CONTENT",
      "TEXT_MESSAGE_END",
      "TOOL_CALL_START",
      "TOOL_CALL_ARGS",
      "TOOL_CALL_ARGS",
      "TOOL_CALL_END",
    ]);
    expect(page.messages).toMatchObject([
      { role: "user" },
      { role: "reasoning", content: "Let me think." },
      {
        role: "assistant",
        content: "I look it up.",
        toolCalls: [{ id: "call-1", function: { name: "look_up", arguments: '{"word":"x"}' } }],
      },
      { role: "tool", content: "found" },
    ]);
  });

  test("gets the messages of subgraphs", async () => {
    const page = front("parent");
    const events = await page.run({ say: "abc" });
    expect(ofType(events, "TEXT_MESSAGE_START")).toHaveLength(2);
    expect(deltasOf(events, "TEXT_MESSAGE_CONTENT")).toBe(`You said: "abc". I have no tools.t0 t1 t2 `);
    expect(page.messages.map(({ content }) => content)).toEqual([
      "abc",
      `You said: "abc". I have no tools.`,
      "t0 t1 t2 ",
    ]);
  });

  test("gets nodes that run at once as one step", async () => {
    const events = await front("research").run({ say: "tea" });
    expect(stepsOf(events)).toEqual([
      ["STEP_STARTED", "plan"],
      ["STEP_FINISHED", "plan"],
      ["STEP_STARTED", "investigate"],
      ["STEP_FINISHED", "investigate"],
      ["STEP_STARTED", "report"],
      ["STEP_FINISHED", "report"],
    ]);
  });

  test("gets messages that no model wrote", async () => {
    const page = front("two-step");
    const events = await page.run({ say: "x" });
    expect(deltasOf(events, "TEXT_MESSAGE_CONTENT")).toBe("firstsecond");
    expect(page.messages.map(({ content }) => content)).toEqual(["x", "first", "second"]);
  });

  test("gets custom events, and changes of the state as patches", async () => {
    const page = front("custom-events");
    const states: unknown[] = [];
    const events = await page.run({
      say: "x",
      state: { count: 2 },
      onEvent: ({ type }) => type === "STATE_SNAPSHOT" && states.push(page.state),
    });
    expect(ofType(events, "CUSTOM")).toMatchObject([
      { name: "custom", value: { index: 0 } },
      { name: "custom", value: { index: 1 } },
    ]);
    expect(ofType(events, "STATE_DELTA")).toMatchObject([
      { delta: [{ op: "add", path: "/sent", value: 2 }] },
    ]);
    // The patch has been applied when the last snapshot arrives.
    expect(states.at(-1)).toEqual({ count: 2, sent: 2 });
  });

  test("runs a graph without messages by its state alone, and keeps its own messages", async () => {
    const page = front("double");
    const kept = { id: "greeting", role: "assistant", content: "Which number?" };
    const events = await page.run({ messages: [kept], state: { number: 4 } });
    expect(stepsOf(events)).toEqual([]);
    expect(page.messages).toMatchObject([kept]);
    const reloaded = aFront(url, "double", { dialect });
    const first = await reloaded.run({ state: { number: 4, constructor: "x" } });
    expect(typesOf(first)).not.toContain("MESSAGES_SNAPSHOT");
    expect(reloaded.state).toEqual({ number: 4, doubled: 8 });
    const again = await reloaded.run();
    expect(stepsOf(again)).toEqual([]);
    await reloaded.run({ state: { ...reloaded.state, number: 5 } });
    expect(reloaded.state).toEqual({ number: 5, doubled: 10 });
  });

  test("gets the error of a run that fails, and may repeat the turn", async () => {
    const page = front("failing");
    const events = await page.run({ say: "x" });
    expect(lastOf(events)).toMatchObject({
      type: "RUN_ERROR",
      message: "This graph always fails.",
      code: "Error",
    });
    const again = await page.run();
    expect(stepsOf(again)).toContainEqual(["STEP_STARTED", "fail"]);
    expect(lastOf(again)).toMatchObject({ type: "RUN_ERROR" });
  });
});

test("only a client of 1.0 gets the version and the outcome", async () => {
  const newer = await aFront(url, "two-step").run({ say: "x" });
  expect(newer[0]).toMatchObject({ type: "RUN_STARTED", protocolVersion: "1.0" });
  expect(newer.at(-1)).toMatchObject({ type: "RUN_FINISHED", outcome: { type: "success" } });
  const older = await aFront(url, "two-step", { dialect: "older" }).run({ say: "x" });
  expect(Object.keys(older[0] ?? {}).sort()).toEqual(["runId", "threadId", "type"]);
  expect(Object.keys(older.at(-1) ?? {}).sort()).toEqual(["runId", "threadId", "type"]);
});

test("the log of a run repeats the state only once per step", async () => {
  const page = aFront(url, "two-step");
  await page.run({ say: "a long message" });
  const [run] = await api.runs(page.threadId);
  const log = await readStream(`${url}/threads/${page.threadId}/runs/${run?.run_id}/stream?last_event_id=-1`);
  const withMessage = log.filter(({ frame }) => frame.includes("a long message"));
  expect(namesOf(withMessage)).toEqual(["values", "values", "values"]);
  expect(dataOf(log, "steps")).toEqual(
    ["first", "second"].flatMap((name) => [
      { id: expect.any(String) as string, name, ended: false },
      { id: expect.any(String) as string, name, ended: true, asked: false, wrote: true },
    ]),
  );
});
