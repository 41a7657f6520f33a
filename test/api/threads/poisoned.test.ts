import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { apiOf, saying, textsOf, type Api, type Refusal, type ThreadRecord } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { query } from "../../helpers/query.ts";

/** Data that a caller wrote on a thread must not break later requests of that caller or of others. */

let server: TestServer;
let api: Api;
let threadId: string;
beforeAll(async () => {
  server = await startTestServer();
  api = apiOf(server);
});
afterAll(async () => await server.close());
beforeEach(async () => {
  threadId = await api.aThread();
  await api.aFinishedRun(threadId, { assistant_id: "counter", input: saying("hello") });
});

/** The search of all users, and the other uses of a thread. */
const expectToWork = async (): Promise<void> => {
  const found = await api.post<ThreadRecord[]>("/threads/search", { ids: [threadId] });
  expect([found.status, found.body.map(({ values }) => textsOf(values?.messages))]).toEqual([
    200,
    [["hello"]],
  ]);
  expect((await api.post("/threads/search", { values: { count: 1 } })).status).toBe(200);
  expect((await api.state(threadId)).values.count).toBe(1);
  expect(await api.history(threadId)).toHaveLength(3);
  const copy = await api.post<ThreadRecord>(`/threads/${threadId}/copy`);
  expect([copy.status, copy.body.values?.count]).toEqual([200, 1]);
  const result = await api.aFinishedRun(threadId, { assistant_id: "counter", input: saying("more") });
  expect([result.count, textsOf(result.messages)]).toEqual([2, ["hello", "more"]]);
  expect((await api.remove(`/threads/${threadId}`)).status).toBe(204);
};

const INHERITED = ["constructor", "toString", "valueOf", "hasOwnProperty", "__defineGetter__"];

describe("a name that every object inherits", () => {
  test.each(INHERITED)("%s is refused as a channel in one sentence", async (name) => {
    for (const update of [
      { [name]: 1 },
      [
        ["count", 1],
        [name, 1],
      ],
    ]) {
      const { status, body } = await api.post<Refusal>(`/threads/${threadId}/runs`, {
        assistant_id: "counter",
        command: { update },
      });
      expect([status, body.detail]).toEqual([
        422,
        `'command.update': names '${name}', which no graph can have.`,
      ]);
    }
    expect(await api.runs(threadId)).toHaveLength(1);
    await expectToWork();
  });

  test("is refused wherever a node is named", async () => {
    const run = (goto: unknown) =>
      api.post<Refusal>(`/threads/${threadId}/runs`, { assistant_id: "counter", command: { goto } });
    const send = { node: "constructor", input: {} };
    const updates = [{ values: {}, as_node: "increment", command: { goto: send } }];
    const answers = await Promise.all([
      run("constructor"),
      run(send),
      run(["increment", send]),
      api.post<Refusal>(`/threads/${threadId}/state`, { values: { count: 1 }, as_node: "toString" }),
      api.post<Refusal>("/threads", { metadata: { graph_id: "counter" }, supersteps: [{ updates }] }),
    ]);
    expect(answers.map(({ status, body }) => [status, body.detail])).toEqual([
      [422, "'command.goto': names 'constructor', which no graph can have."],
      [422, "'command.goto.node': names 'constructor', which no graph can have."],
      [422, "'command.goto.1.node': names 'constructor', which no graph can have."],
      [422, "'as_node': names 'toString', which no graph can have."],
      [422, "'supersteps.0.updates.0.command.goto.node': names 'constructor', which no graph can have."],
    ]);
    await expectToWork();
  });
});

test("a message's field may be named like a method of messages", async () => {
  const given = { role: "user", content: "odd", toJSON: 1, constructor: 2, toDict: 3 };
  const result = await api.aFinishedRun(threadId, { assistant_id: "counter", input: { messages: [given] } });
  expect(textsOf(result.messages)).toEqual(["hello", "odd"]);
  const state = await api.state(threadId);
  expect(state.values.messages?.[1]).toMatchObject({ content: "odd", constructor: 2 });
  const again = await api.aFinishedRun(threadId, { assistant_id: "counter", input: saying("more") });
  expect(textsOf(again.messages)).toEqual(["hello", "odd", "more"]);
});

describe("a thread with an unreadable row", () => {
  beforeEach(async () => {
    await query(
      server,
      `update threadloom.checkpoints set record = 'no JSON' where thread_id = $1 and checkpoint_id =
         (select checkpoint_id from threadloom.checkpoints where thread_id = $1 order by seq desc limit 1)`,
      [threadId],
    );
  });

  test("does not break a search, and shows no values; the log names the thread", async () => {
    const healthy = await api.aThread();
    const found = await api.post<ThreadRecord[]>("/threads/search", { ids: [threadId, healthy] });
    expect([found.status, found.body.map(({ values }) => values)]).toEqual([200, [null, null]]);
    expect((await api.post("/threads/search", { values: { count: 1 } })).status).toBe(200);
    expect((await api.thread(threadId)).values).toBeNull();
    const line = server.lines.findLast((text) => text.includes("a stored state can't be read"));
    expect(JSON.parse(line ?? "{}")).toMatchObject({ level: 50, thread_id: threadId });
  });

  test("has a history that names the unreadable state, and its last good state", async () => {
    const [broken, good, first] = await api.history(threadId);
    expect(broken).toMatchObject({
      values: {},
      created_at: null,
      tasks: [{ error: "This state can't be read; the server's log says why." }],
    });
    expect([good?.values.count, textsOf(good?.values.messages), first?.next]).toEqual([
      0,
      ["hello"],
      ["__start__"],
    ]);
    const state = await api.get(`/threads/${threadId}/state/${good?.checkpoint?.checkpoint_id}`);
    expect(state.status).toBe(200);
  });

  test("can be deleted", async () => {
    expect((await api.remove(`/threads/${threadId}`)).status).toBe(204);
  });
});
