import { describe, expect, test } from "vitest";
import { saying, textsOf, type Api, type Result } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { dataOf, namesOf, readStream } from "../../helpers/server-sent-events.ts";
import { onServer } from "../../helpers/servers.ts";

const ASK = { assistant_id: "approval", input: saying("a refund") };
const QUESTION = { question: "Send this draft?", options: ["approve", "reject"] };
const SENT = 'Sent: Dear customer, about your request "a refund": we take care of it.';

let server: TestServer;
let api: Api;
onServer({}, (opened) => ({ server, api } = opened));

const anAskingThread = async (): Promise<string> => {
  const threadId = await api.aThread();
  await api.aFinishedRun(threadId, ASK);
  return threadId;
};
const resume = (threadId: string, value: unknown, more: object = {}): Promise<Result> =>
  api.aFinishedRun(threadId, { assistant_id: "approval", command: { resume: value }, ...more });

/** PostgreSQL's `jsonb` refuses the first ones; the others only look like their escapes. */
const ODD_TEXTS = ["a\u0000b", "half \ud800 pair", String.raw`a\u0000b`, String.raw`half \\ud800 pair`];

describe("a run that asks a person", () => {
  test.each(ODD_TEXTS)(
    "about the text %j is the same in each view of the thread, also of a copy",
    async (text) => {
      const threadId = await api.aThread();
      await api.aFinishedRun(threadId, { ...ASK, input: saying(text) });
      const [task] = (await api.state(threadId)).tasks;
      expect(JSON.stringify(task?.interrupts[0]?.value)).toContain(JSON.stringify(text).slice(1, -1));
      const { body: copy } = await api.post<{ thread_id: string }>(`/threads/${threadId}/copy`);
      const { body: found } = await api.post<{ interrupts: unknown }[]>("/threads/search", {
        ids: [threadId],
      });
      for (const { interrupts } of [await api.thread(threadId), await api.thread(copy.thread_id), found[0]!])
        expect(interrupts).toEqual({ [task?.id ?? ""]: task?.interrupts });
      expect(await resume(threadId, text)).toMatchObject({ status: "sent" });
      expect(textsOf((await api.thread(threadId)).values?.messages)).toEqual([text, `Sent: ${text}`]);
    },
  );

  test("leaves the thread interrupted, with the question in every view of it", async () => {
    const threadId = await anAskingThread();
    const [run] = await api.runs(threadId);
    expect(run?.status).toMatch(/^(success|interrupted)$/);
    const state = await api.state(threadId);
    expect(state.next).toEqual(["review"]);
    const [task] = state.tasks;
    expect(task).toMatchObject({ name: "review", interrupts: [{ id: expect.any(String), value: QUESTION }] });
    const thread = await api.thread(threadId);
    expect(thread).toMatchObject({
      status: "interrupted",
      interrupts: { [task?.id ?? ""]: task?.interrupts },
    });
    const { body: found } = await api.post<{ thread_id: string; interrupts: unknown }[]>("/threads/search", {
      status: "interrupted",
      ids: [threadId],
    });
    expect(found).toMatchObject([{ thread_id: threadId, interrupts: thread.interrupts }]);
  });

  test("shows the question in a last values event, and as an update", async () => {
    const threadId = await api.aThread();
    const events = await readStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: { ...ASK, stream_mode: ["values", "updates"] },
    });
    const interrupt = [{ id: expect.any(String), value: expect.objectContaining(QUESTION) }];
    expect(dataOf(events, "updates")).toEqual([
      { write: { draft: expect.any(String), status: "drafted" } },
      { __interrupt__: interrupt },
    ]);
    expect(dataOf(events, "values").at(-1)).toMatchObject({ __interrupt__: interrupt });
    expect(namesOf(events)).not.toContain("error");
  });

  test.each([["updates"], ["values"]])("shows it with only the mode %s", async (mode) => {
    const threadId = await api.aThread();
    const events = await readStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: { ...ASK, stream_mode: mode },
    });
    expect(new Set(namesOf(events))).toEqual(new Set(["metadata", mode]));
    expect(dataOf(events, mode).at(-1)).toHaveProperty("__interrupt__");
  });

  test("streams no question to a reader of neither mode", async () => {
    const threadId = await api.aThread();
    const events = await readStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: { ...ASK, stream_mode: "custom" },
    });
    expect(namesOf(events)).toEqual(["metadata"]);
  });
});

describe("an answer", () => {
  test.each([
    [{ decision: "approve" }, "sent", SENT],
    [{ decision: "edit", text: "Hello!" }, "sent", "Sent: Hello!"],
    [{ decision: "reject" }, "rejected", "The draft was rejected; nothing was sent."],
    [true, "sent", SENT],
    [false, "rejected", "The draft was rejected; nothing was sent."],
    ["approve", "sent", SENT],
    ["reject", "rejected", "The draft was rejected; nothing was sent."],
    ["Hello!", "sent", "Sent: Hello!"],
  ])("%j continues where the graph stopped", async (answer, status, message) => {
    const threadId = await anAskingThread();
    const result = await resume(threadId, answer);
    expect(result["status"]).toBe(status);
    expect(textsOf(result.messages)).toEqual(["a refund", message]);
    expect(result.__interrupt__).toBeUndefined();
    expect(await api.thread(threadId)).toMatchObject({ status: "idle", interrupts: {} });
    expect((await api.state(threadId)).next).toEqual([]);
  });

  test("that is invalid makes the graph ask again", async () => {
    const threadId = await anAskingThread();
    const again = await resume(threadId, { decision: "perhaps" });
    expect(again.__interrupt__).toMatchObject([{ value: { problem: "Not a decision." } }]);
    expect(await api.thread(threadId)).toMatchObject({ status: "interrupted" });
    expect((await resume(threadId, true))["status"]).toBe("sent");
  });

  test("takes precedence over an input in the same request", async () => {
    const threadId = await anAskingThread();
    const result = await resume(threadId, true, { input: {} });
    expect(textsOf(result.messages)).toEqual(["a refund", SENT]);
  });

  test("may contain a change of the state, and works in RemoteGraph's form", async () => {
    const threadId = await anAskingThread();
    const result = await api.aFinishedRun(threadId, {
      assistant_id: "approval",
      command: { lg_name: "Command", resume: true, update: { draft: "Changed." }, goto: [] },
    });
    expect(textsOf(result.messages)).toEqual(["a refund", "Sent: Changed."]);
  });

  test("may be a jump instead: goto __end__ skips the question", async () => {
    const threadId = await anAskingThread();
    await api.aFinishedRun(threadId, {
      assistant_id: "approval",
      command: { goto: "__end__", update: null },
    });
    const thread = await api.thread(threadId);
    expect(thread.status).toBe((await api.state(threadId)).next.length > 0 ? "interrupted" : "idle");
    expect(textsOf(thread.values?.messages)).toEqual(["a refund"]);
  });

  test("can differ in a fork: a run from before the question asks again", async () => {
    const threadId = await anAskingThread();
    await resume(threadId, true);
    const before = (await api.history(threadId)).find(({ next }) => next[0] === "write");
    const asked = await api.aFinishedRun(threadId, {
      assistant_id: "approval",
      checkpoint_id: before?.checkpoint?.checkpoint_id,
    });
    expect(asked.__interrupt__).toMatchObject([{ value: QUESTION }]);
    expect(await api.thread(threadId)).toMatchObject({ status: "interrupted" });
    const result = await resume(threadId, { decision: "reject" });
    expect(result["status"]).toBe("rejected");
    expect((await api.state(threadId)).values["status"]).toBe("rejected");
    const children = (await api.history(threadId)).filter(
      ({ parent_checkpoint }) => parent_checkpoint?.checkpoint_id === before?.checkpoint?.checkpoint_id,
    );
    expect(children).toHaveLength(2);
  });

  test("on a thread without a question ends normally", async () => {
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, { assistant_id: "counter", input: {} });
    const answer = await api.post<Result>(`/threads/${threadId}/runs/wait`, {
      assistant_id: "counter",
      command: { resume: 1 },
    });
    expect(answer.status).toBe(200);
    expect((await api.untilQuiet(threadId)).values).toMatchObject({ count: 1 });
  });
});

describe("a run that fails", () => {
  test.each(ODD_TEXTS)("with the text %j has this error in each view of it", async (text) => {
    const threadId = await api.aThread();
    const failed = await api.aFinishedRun(threadId, { assistant_id: "failing", input: { reason: text } });
    const [run] = await api.runs(threadId);
    const { body: copy } = await api.post<{ thread_id: string }>(`/threads/${threadId}/copy`);
    const errors = [
      ...[failed.__error__, run?.error, (await api.thread(threadId)).error],
      (await api.thread(copy.thread_id)).error,
    ];
    for (const error of errors) expect(error).toMatchObject({ message: text });
  });
});

describe("static interrupts", () => {
  const twoStep = { assistant_id: "two-step", input: saying("go") };

  test("interrupt_before stops before a node, and a run without input continues", async () => {
    const threadId = await api.aThread();
    const result = await api.aFinishedRun(threadId, { ...twoStep, interrupt_before: ["second"] });
    expect(textsOf(result.messages)).toEqual(["go", "first"]);
    expect((await api.state(threadId)).next).toEqual(["second"]);
    expect(await api.thread(threadId)).toMatchObject({ status: "interrupted" });
    const rest = await api.aFinishedRun(threadId, { assistant_id: "two-step" });
    expect(textsOf(rest.messages)).toEqual(["go", "first", "second"]);
    expect(await api.thread(threadId)).toMatchObject({ status: "idle" });
  });

  test("interrupt_after stops after a node, and input null continues", async () => {
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, { ...twoStep, interrupt_after: ["first"] });
    expect((await api.state(threadId)).next).toEqual(["second"]);
    const rest = await api.aFinishedRun(threadId, { assistant_id: "two-step", input: null });
    expect(textsOf(rest.messages)).toEqual(["go", "first", "second"]);
  });

  test('"*" stops at every node', async () => {
    const threadId = await api.aThread();
    const stops: unknown[] = [];
    await api.aFinishedRun(threadId, { ...twoStep, interrupt_before: "*" });
    for (let round = 0; round < 2; round += 1) {
      stops.push((await api.state(threadId)).next);
      await api.aFinishedRun(threadId, { assistant_id: "two-step", interrupt_before: "*" });
    }
    expect(stops).toEqual([["first"], ["second"]]);
    expect(await api.thread(threadId)).toMatchObject({ status: "idle" });
  });

  test("a stop causes no error in the stream", async () => {
    const threadId = await api.aThread();
    const events = await readStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: { ...twoStep, interrupt_before: ["second"], stream_mode: ["updates"] },
    });
    expect(namesOf(events)).not.toContain("error");
    expect(dataOf(events, "updates")[0]).toHaveProperty("first");
  });
});

describe("a run from a checkpoint", () => {
  test("forks: it continues from there, and later checkpoints stay in the history", async () => {
    const threadId = await api.aThread();
    const counting = { assistant_id: "counter", input: { count: 10 } };
    await api.aFinishedRun(threadId, counting);
    const first = (await api.state(threadId)).checkpoint;
    await api.aFinishedRun(threadId, counting);
    expect((await api.state(threadId)).values["count"]).toBe(22);
    const before = await api.history(threadId);
    for (const way of [
      { checkpoint_id: first?.checkpoint_id },
      { checkpoint: { checkpoint_id: first?.checkpoint_id, checkpoint_ns: "", checkpoint_map: null } },
      { config: { configurable: { checkpoint_id: first?.checkpoint_id } } },
    ]) {
      const forked = await api.aFinishedRun(threadId, {
        assistant_id: "counter",
        input: { count: 100 },
        ...way,
      });
      expect(forked["count"]).toBe(112);
      expect((await api.state(threadId)).values["count"]).toBe(112);
    }
    const ids = new Set((await api.history(threadId)).map(({ checkpoint }) => checkpoint?.checkpoint_id));
    for (const { checkpoint } of before) expect(ids).toContain(checkpoint?.checkpoint_id);
  });

  test("without input replays what came after it", async () => {
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, { assistant_id: "two-step", input: saying("go") });
    const between = (await api.history(threadId)).find(({ next }) => next[0] === "second");
    const replayed = await api.aFinishedRun(threadId, {
      assistant_id: "two-step",
      checkpoint_id: between?.checkpoint?.checkpoint_id,
    });
    expect(textsOf(replayed.messages)).toEqual(["go", "first", "second"]);
  });

  test("of another thread is refused", async () => {
    const [threadId, foreign] = [await api.aThread(), await api.aThread()];
    await api.aFinishedRun(foreign, { assistant_id: "counter", input: {} });
    const { checkpoint } = await api.state(foreign);
    const answer = await api.post(`/threads/${threadId}/runs/wait`, {
      assistant_id: "counter",
      input: {},
      checkpoint: { thread_id: foreign, checkpoint_id: checkpoint?.checkpoint_id },
    });
    expect(answer.status).toBe(404);
    expect(await api.runs(threadId)).toEqual([]);
  });
});

describe("durability", () => {
  test.each(["sync", "async", "exit"])("%s keeps the result", async (durability) => {
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, { assistant_id: "ten-steps", input: {}, durability });
    expect((await api.state(threadId)).values["steps"]).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect((await api.history(threadId)).length).toBe(durability === "exit" ? 1 : 12);
  });

  test("checkpoint_during false means exit", async () => {
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, { assistant_id: "ten-steps", input: {}, checkpoint_during: false });
    expect((await api.history(threadId)).length).toBe(1);
  });
});
