import { describe, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { saying, textsOf, type Api, type Message } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { command, openFrames, isInput, started, type CommandAnswer } from "./frames.ts";
import { onServer } from "../../helpers/servers.ts";

/** Commands to a thread over HTTP: their results and their refusals. */

let server: TestServer;
let api: Api;
onServer({}, (opened) => ({ server, api } = opened));

const send = async (threadId: string, method: string, params: object): Promise<CommandAnswer> => {
  const { status, answer } = await command(server.url, threadId, method, params);
  expect(status).toBe(200);
  return answer;
};
const HELLO = { assistant_id: "two-step", input: saying("hello") };
const aQuestion = async (): Promise<{ threadId: string; interruptId: string }> => {
  const threadId = newId();
  const { runId } = await started(server.url, threadId, { assistant_id: "approval", input: saying("tea") });
  await api.untilRunIs(threadId, runId, "success");
  const { interrupts } = await api.thread(threadId);
  return { threadId, interruptId: Object.values(interrupts).flat()[0]?.id ?? "" };
};

describe("run.start", () => {
  test("creates the thread named by the client before it answers", async () => {
    const threadId = newId();
    const { runId, since } = await started(server.url, threadId, { ...HELLO, metadata: { from: "test" } });
    expect([since, (await api.run(threadId, runId)).metadata]).toEqual([
      0,
      expect.objectContaining({ from: "test" }),
    ]);
  });

  test("accepts the fields of a run of the other wire, and returns no more of it", async () => {
    const threadId = newId();
    const { runId } = await started(server.url, threadId, {
      ...HELLO,
      config: { tags: ["one"], configurable: { color: "red" } },
      durability: "sync",
      multitaskStrategy: "rollback",
      langsmith_tracer: { project_name: "x" },
    });
    const { kwargs, multitask_strategy } = (await api.run(threadId, runId)) as unknown as {
      kwargs: Record<string, unknown>;
      multitask_strategy: string;
    };
    expect(multitask_strategy).toBe("rollback");
    expect(kwargs).toMatchObject({
      durability: "sync",
      config: { tags: ["one"], configurable: { color: "red" } },
    });
    expect(Object.keys(kwargs)).not.toContain("event_streaming");
  });

  test("returns the last number before its run, so the client misses nothing of the run", async () => {
    const threadId = newId();
    for (let turn = 0; turn < 3; turn += 1) {
      const { runId, since } = await started(server.url, threadId, HELLO);
      const stream = await openFrames(server.url, threadId, { channels: ["lifecycle", "values"], since });
      await stream.until(({ event_id: id }) => id === `synth:${runId}:completed`);
      expect(stream.seen[0]?.event_id).toBe(`synth:${runId}:running`);
      stream.close();
    }
  });

  test("continues from an earlier checkpoint", async () => {
    const threadId = newId();
    const { runId } = await started(server.url, threadId, HELLO);
    await api.untilRunIs(threadId, runId, "success");
    const first = (await api.history(threadId)).at(-1)?.checkpoint?.checkpoint_id;
    const fork = await started(server.url, threadId, {
      ...HELLO,
      input: saying("instead"),
      config: { configurable: { checkpoint_id: first } },
    });
    await api.untilRunIs(threadId, fork.runId, "success");
    expect(textsOf((await api.state(threadId)).values.messages as Message[])).not.toContain("hello");
  });

  test("answers the thread's pending interrupt", async () => {
    const { threadId } = await aQuestion();
    await started(server.url, threadId, { assistant_id: "approval", input: { decision: "reject" } });
    await api.untilQuiet(threadId);
    expect((await api.state(threadId)).values["status"]).toBe("rejected");
  });

  test("refuses an unknown assistant with an HTTP status, and invalid params in the answer", async () => {
    const unknown = await command(server.url, newId(), "run.start", { assistant_id: "nobody" });
    expect(unknown.status).toBe(404);
    const threadId = newId();
    for (const params of [
      {},
      { assistant_id: 1 },
      { ...HELLO, config: { recursion_limit: "many" } },
      { ...HELLO, multitask_strategy: "never" },
      { ...HELLO, metadata: { text: "\u0000" } },
    ]) {
      const { type, error, message } = await send(threadId, "run.start", params);
      expect([type, error, message]).toEqual(["error", "invalid_argument", expect.stringMatching(/^'.*\.$/)]);
    }
    expect((await api.get(`/threads/${threadId}`)).status).toBe(404);
  });

  test("is refused while the thread is busy, if requested", async () => {
    const threadId = newId();
    const { runId } = await started(server.url, threadId, {
      assistant_id: "sleep",
      input: { milliseconds: 600_000 },
    });
    const refused = await send(threadId, "run.start", { ...HELLO, multitask_strategy: "reject" });
    expect(refused).toMatchObject({ type: "error", error: "invalid_argument" });
    await api.cancel(threadId, runId);
  });
});

describe("input.respond", () => {
  test("accepts one of many concurrent answers, and starts one run for it", async () => {
    for (let round = 0; round < 5; round += 1) {
      const { threadId, interruptId } = await aQuestion();
      const answers = await Promise.all(
        Array.from({ length: 20 }, () =>
          send(threadId, "input.respond", { interrupt_id: interruptId, response: true }),
        ),
      );
      const taken = answers.filter(({ type }) => type === "success");
      expect(taken).toHaveLength(1);
      const refused = answers.filter(({ type }) => type === "error").map(({ error }) => error);
      expect(refused).toEqual(Array.from({ length: 19 }, () => "no_such_interrupt"));
      await api.untilQuiet(threadId);
      expect(await api.runs(threadId)).toHaveLength(2);
    }
  });

  test("accepts one answer, or several, with an update", async () => {
    const one = await aQuestion();
    const answers = { interrupt_id: one.interruptId, namespace: [], response: true };
    expect(await send(one.threadId, "input.respond", { responses: [answers] })).toMatchObject({
      type: "success",
    });
    await api.untilQuiet(one.threadId);
    expect((await api.state(one.threadId)).values["status"]).toBe("sent");
  });

  test("stops the continuing run where the answer says", async () => {
    const { threadId, interruptId } = await aQuestion();
    const stop = { interrupt_before: ["send"], context: { from: "test" } };
    const response = { decision: "approve" };
    const { result } = await send(threadId, "input.respond", {
      interrupt_id: interruptId,
      response,
      ...stop,
    });
    await api.untilRunIs(threadId, String(result?.["run_id"]), "interrupted", "success");
    expect((await api.state(threadId)).next).toEqual(["send"]);
  });

  test("is refused without a pending interrupt, after an answer, and without a thread", async () => {
    const { threadId, interruptId } = await aQuestion();
    const answer = (id: string) => ({ namespace: [], interrupt_id: id, response: true });
    expect(await send(threadId, "input.respond", answer("another"))).toMatchObject({
      error: "no_such_interrupt",
    });
    const both = await Promise.all([
      send(threadId, "input.respond", answer(interruptId)),
      send(threadId, "input.respond", answer(interruptId)),
    ]);
    expect(both.map(({ type }) => type).toSorted()).toEqual(["error", "success"]);
    expect(both.find(({ type }) => type === "error")).toMatchObject({ error: "no_such_interrupt" });
    await api.untilQuiet(threadId);
    expect(await send(newId(), "input.respond", answer(interruptId))).toMatchObject({ error: "no_such_run" });
    for (const params of [{}, { interrupt_id: 1 }, { responses: [] }, { responses: [{}] }])
      expect(await send(threadId, "input.respond", params)).toMatchObject({ error: "invalid_argument" });
  });
});

describe("a read of a thread", () => {
  test("returns the values of a graph, all or selected, and its checkpoints", async () => {
    const threadId = newId();
    const { runId } = await started(server.url, threadId, HELLO);
    await api.untilRunIs(threadId, runId, "success");
    const state = await api.state(threadId);
    const all = await send(threadId, "state.get", { namespace: [] });
    expect(all.result).toEqual({ values: state.values, checkpoint: { id: state.checkpoint?.checkpoint_id } });
    const none = await send(threadId, "state.get", { namespace: [], keys: ["constructor"] });
    expect(none.result?.["values"]).toEqual({});
    const { result } = await send(threadId, "state.listCheckpoints", { limit: 2 });
    const history = await api.history(threadId);
    expect((result?.["checkpoints"] as { id: string }[]).map(({ id }) => id)).toEqual(
      history.slice(0, 2).map(({ checkpoint }) => checkpoint?.checkpoint_id),
    );
    expect(await send(threadId, "agent.getTree", {})).toMatchObject({
      result: { tree: { namespace: [], status: "completed", graph_name: "two-step" } },
    });
    const fork = await send(threadId, "state.fork", {
      checkpoint_id: history.at(-1)?.checkpoint?.checkpoint_id,
      input: saying("again"),
    });
    expect(fork).toMatchObject({ type: "success", result: { thread_id: threadId } });
    await api.untilQuiet(threadId);
  });

  test("is refused with codes", async () => {
    const threadId = await api.aThread();
    const missing = newId();
    expect(await send(missing, "state.get", { namespace: [] })).toMatchObject({ error: "no_such_run" });
    expect(await send(missing, "agent.getTree", {})).toMatchObject({ error: "no_such_run" });
    expect(await send(threadId, "agent.getTree", { run_id: missing })).toMatchObject({
      error: "no_such_run",
    });
    expect(await send(threadId, "state.get", { namespace: ["no:where"] })).toMatchObject({
      error: "no_such_namespace",
    });
    expect(await send(threadId, "state.fork", { checkpoint_id: missing })).toMatchObject({
      error: "no_such_run",
    });
    expect(await send(threadId, "input.inject", {})).toMatchObject({ error: "not_supported" });
    expect(await send(threadId, "subscription.subscribe", {})).toMatchObject({ error: "not_supported" });
    for (const method of ["no.such", "constructor", "__proto__", ""])
      expect(await send(threadId, method, {})).toMatchObject({ error: "unknown_command" });
  });
});

test("a body that is not an envelope is refused with an HTTP status; an envelope as text is accepted", async () => {
  const post = async (body: string) =>
    await fetch(`${server.url}/threads/${newId()}/commands`, {
      method: "POST",
      headers: { "content-type": "text/plain;charset=UTF-8" },
      body,
    });
  for (const [body, status] of [
    ["", 422],
    ["{", 400],
    ["[]", 422],
    ['{"method":"run.start"}', 422],
    ['{"id":"1","method":"run.start"}', 422],
    ['{"id":1,"method":"run.start","params":[]}', 422],
    ['{"id":1,"method":"no.such"}', 200],
  ] as const)
    expect([body, (await post(body)).status]).toEqual([body, status]);
});

test("a connection's subscriptions are limited, and unknown channels are refused", async () => {
  const ask = async (body: unknown) =>
    await fetch(`${server.url}/threads/${newId()}/stream/events`, {
      method: "POST",
      headers: { "content-type": "text/plain" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(5_000),
    }).then(async (answer) => {
      await answer.body?.cancel();
      return answer.status;
    });
  const channels = ["values"];
  for (const body of [
    {},
    { channels: [] },
    { channels: [1] },
    { channels: Array(101).fill("values") },
    { channels: ["x".repeat(1_001)] },
    { channels, namespaces: Array(1_001).fill([]) },
    { channels, namespaces: ["a"] },
    { channels, namespaces: [Array(101).fill("a")] },
    { channels, depth: -1 },
    { channels, since: -1 },
    { channels, since: "1" },
    { channels, since: 2 ** 60 },
  ])
    expect([JSON.stringify(body).slice(0, 60), await ask(body)]).toEqual([
      JSON.stringify(body).slice(0, 60),
      422,
    ]);
  expect(
    await ask({ channels: ["no-such", "constructor"], namespaces: null, depth: null, since: null }),
  ).toBe(200);
});

test("an interrupt event contains the index of its answer, equal to the one in `threads.interrupts`", async () => {
  const { threadId, interruptId } = await aQuestion();
  const stream = await openFrames(server.url, threadId, { channels: ["input"] });
  const { params } = await stream.until(isInput);
  expect(params).toMatchObject({ namespace: [], data: { interrupt_id: interruptId } });
  stream.close();
});
