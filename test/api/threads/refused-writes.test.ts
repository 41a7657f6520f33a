import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { apiOf, saying, textsOf, type Api, type StateRecord, type ThreadRecord } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { query } from "../../helpers/query.ts";

/**
 * LangGraph stores a run's writes before its reducers see them. Writes that the reducers then refuse stay in the database, and must not
 * hide the thread's last good state.
 */

const GRAPHS = fileURLToPath(new URL("./graphs/langgraph.json", import.meta.url));

let server: TestServer;
let api: Api;
let threadId: string;
beforeAll(async () => {
  server = await startTestServer({ graphConfigFile: GRAPHS });
  api = apiOf(server);
});
afterAll(async () => await server.close());
beforeEach(async () => {
  threadId = await api.aThread();
  await api.aFinishedRun(threadId, { assistant_id: "refusing", input: saying("hello") });
});

type Task = StateRecord["tasks"][number] & { error: string | null; result: unknown };
const tasksOf = (state: StateRecord): [string, string | null][] =>
  (state.tasks as Task[]).map(({ name, error }) => [name, error?.split("\n")[0] ?? null]);

const aFailedRun = async (fields: object): Promise<string> => {
  const { __error__ } = await api.aFinishedRun(threadId, { assistant_id: "refusing", ...fields });
  expect((await api.thread(threadId)).status).toBe("error");
  return __error__?.message.split("\n")[0] ?? "no error";
};

/** The thread reads as before the failed run, and continues from there. */
const expectToGoOn = async (): Promise<void> => {
  expect(textsOf((await api.state(threadId)).values.messages)).toEqual(["hello"]);
  expect(textsOf((await api.history(threadId))[0]?.values.messages)).toEqual(["hello"]);
  const found = await api.post<ThreadRecord[]>("/threads/search", { ids: [threadId] });
  expect(found.body.map(({ values }) => textsOf(values?.messages))).toEqual([["hello"]]);
  const copy = await api.post<ThreadRecord>(`/threads/${threadId}/copy`);
  const ran = await api.aFinishedRun(copy.body.thread_id, {
    assistant_id: "refusing",
    command: { update: { messages: [{ role: "user", content: "by command" }], give: {} }, goto: "other" },
  });
  expect(textsOf(ran.messages)).toEqual(["hello", "by command"]);
  const next = await api.aFinishedRun(threadId, {
    assistant_id: "refusing",
    input: { ...saying("more"), give: {} },
  });
  expect(textsOf(next.messages)).toEqual(["hello", "more"]);
  expect((await api.thread(threadId)).status).toBe("idle");
  expect(tasksOf(await api.state(threadId))).toEqual([]);
  expect((await api.post(`/threads/${threadId}/history`, {})).status).toBe(200);
};

const NO_MESSAGE = "Unable to coerce message from array: only human, AI, system, developer, or tool message";
const BAD_MESSAGES: [string, unknown[], string][] = [
  ["an object that is no message", [{ foo: 1 }], NO_MESSAGE],
  ["null", [null], "Cannot read properties of null (reading 'role')"],
  ["a message of an unknown role", [{ role: "nobody", content: "?" }], NO_MESSAGE],
];

describe.each(BAD_MESSAGES)("after an input with %s", (_, messages, error) => {
  test("the state is the last good one, with the failed task and its error", async () => {
    expect(await aFailedRun({ input: { messages } })).toMatch(error);
    const state = await api.state(threadId);
    expect(state.next).toEqual(["__start__"]);
    expect(tasksOf(state)).toEqual([["__start__", expect.stringContaining(error)]]);
    expect(tasksOf((await api.history(threadId))[0]!)).toEqual(tasksOf(state));
    expect(await api.aFinishedRun(threadId, { assistant_id: "refusing", input: null })).toMatchObject({
      count: 1,
    });
    await expectToGoOn();
  });

  test("the state can be updated", async () => {
    await aFailedRun({ input: { messages } });
    const update = { values: { count: 10 }, as_node: "other" };
    expect((await api.post(`/threads/${threadId}/state`, update)).status).toBe(200);
    const { values, next } = await api.state(threadId);
    expect([values.count, textsOf(values.messages), next]).toEqual([11, ["hello"], []]);
    await expectToGoOn();
  });
});

describe("after a command", () => {
  test.each(BAD_MESSAGES)("that writes %s, nothing of the command remains", async (_, messages, error) => {
    expect(await aFailedRun({ command: { update: { count: 100, messages } } })).toMatch(error);
    const state = await api.state(threadId);
    expect([state.values.count, state.next]).toEqual([1, []]);
    await expectToGoOn();
  });

  test("that writes two values to a channel for one, nothing of the command remains", async () => {
    const update = [
      ["single", "a"],
      ["single", "b"],
    ];
    expect(await aFailedRun({ command: { update } })).toMatch(/single/);
    await expectToGoOn();
  });

  test("that answers a question and has a refused write, the question still waits", async () => {
    await api.aFinishedRun(threadId, { assistant_id: "refusing", input: { give: { ask: true } } });
    const resume = (command: object) => api.aFinishedRun(threadId, { assistant_id: "refusing", command });
    const failed = await resume({ resume: "yes", update: { positive: -1 } });
    expect(failed.__error__?.message).toBe("-1 is not positive");
    expect((await api.state(threadId)).next).toEqual(["ask"]);
    const answered = await resume({ resume: "yes", update: { positive: 1 } });
    expect([textsOf(answered.messages), answered.positive]).toEqual([["hello", "yes"], 1]);
  });
});

describe("after a step in which one task's writes are refused", () => {
  test("that task has failed; the others have not", async () => {
    const error = await aFailedRun({ input: { give: { positive: -1 } } });
    expect(error).toBe("-1 is not positive");
    const state = await api.state(threadId);
    expect([state.values.positive, state.next]).toEqual([0, ["write"]]);
    const tasks = [
      ["other", null],
      ["write", "-1 is not positive"],
    ];
    expect(tasksOf(state).sort()).toEqual(tasks);
    expect(tasksOf((await api.history(threadId))[0]!).sort()).toEqual(tasks);
    await expectToGoOn();
  });

  test("a run without input retries that task, and no other", async () => {
    await aFailedRun({ input: { give: { positive: -1 } } });
    const update = { values: { give: { positive: 5 } }, as_node: "__start__" };
    expect((await api.post(`/threads/${threadId}/state`, update)).status).toBe(200);
    const again = await api.aFinishedRun(threadId, { assistant_id: "refusing", input: null });
    expect(again.positive).toBe(5);
  });
});

test("a run whose process dies before the failure is stored fails at its next attempt, too", async () => {
  await aFailedRun({ input: { messages: [null] } });
  const [run] = await api.runs(threadId);
  // Restores the moment before the end was stored, with a process that no longer exists.
  await query(
    server,
    `with run as (
       update threadloom.runs set status = 'running', error = null, lease_until = now() - interval '1 minute'
       where run_id = $2)
     update threadloom.threads set status = 'busy', unfinished_runs = 1 where thread_id = $1`,
    [threadId, run?.run_id],
  );
  const ended = await api.untilRunIs(threadId, run?.run_id ?? "", "error", "success");
  expect(ended.status).toBe("error");
  await expectToGoOn();
});
