import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunRecord } from "../../../src/api/runs/schemas.ts";
import {
  apiOf,
  saying,
  textsOf,
  type Api,
  type Refusal,
  type Result,
  type ThreadRecord,
} from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";

const MISSING = "00000000-0000-4000-8000-000000000000";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

let server: TestServer;
let api: Api;
beforeAll(async () => {
  server = await startTestServer({
    graphConfigFile: fileURLToPath(new URL("./graphs/langgraph.json", import.meta.url)),
  });
  api = apiOf(server);
});
afterAll(() => server.close());

interface Mirrored {
  configurable: Record<string, unknown>;
  context: Record<string, unknown>;
  metadata: Record<string, unknown>;
  tags: string[];
}
/** The config that the graph of a run received. */
const mirrored = async (fields: object, threadFields: object = {}): Promise<Mirrored> => {
  const threadId = await api.aThread(threadFields);
  return (await api.aFinishedRun(threadId, {
    assistant_id: "mirror",
    input: {},
    ...fields,
  })) as unknown as Mirrored;
};
const anAssistant = async (fields: object): Promise<string> =>
  (await api.post<{ assistant_id: string }>("/assistants", { graph_id: "mirror", ...fields })).body
    .assistant_id;

describe("creating a run", () => {
  test("answers with the run, and names it in Content-Location", async () => {
    const threadId = await api.aThread();
    const { status, headers, body } = await api.post<RunRecord>(`/threads/${threadId}/runs`, {
      assistant_id: "two-step",
      input: saying("hello"),
      metadata: { topic: "tests" },
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      run_id: expect.stringMatching(UUID),
      thread_id: threadId,
      assistant_id: expect.any(String),
      metadata: { topic: "tests" },
      multitask_strategy: "enqueue",
    });
    expect(["pending", "running"]).toContain(body.status);
    expect(body.kwargs).toMatchObject({ input: saying("hello") });
    expect(headers.get("content-location")).toBe(`/threads/${threadId}/runs/${body.run_id}`);
    expect(Date.parse(body.created_at)).toBeGreaterThan(Date.now() - 60_000);
    await api.untilRunIs(threadId, body.run_id, "success");
    expect(textsOf((await api.state(threadId)).values.messages)).toEqual(["hello", "first", "second"]);
  });

  test("ends as success, with the thread idle and its metadata naming graph and assistant", async () => {
    const threadId = await api.aThread({ metadata: { mine: 1 } });
    const run = await api.aRun(threadId, { assistant_id: "two-step", input: saying("hello") });
    await api.join(threadId, run.run_id);
    expect(await api.run(threadId, run.run_id)).toMatchObject({ status: "success" });
    expect(await api.thread(threadId)).toMatchObject({
      status: "idle",
      metadata: { mine: 1, graph_id: "two-step", assistant_id: run.assistant_id },
      interrupts: {},
    });
  });

  test("accepts an assistant by its id, by its graph's id, and by the system assistant's id", async () => {
    const own = await anAssistant({ name: "mine", context: { who: "me" } });
    const threadId = await api.aThread();
    const byGraph = await api.aRun(threadId, { assistant_id: "mirror", input: {} });
    const bySystemId = await api.aRun(threadId, { assistant_id: byGraph.assistant_id, input: {} });
    expect(bySystemId.assistant_id).toBe(byGraph.assistant_id);
    const byOwn = await api.aRun(threadId, { assistant_id: own, input: {} });
    expect(byOwn.assistant_id).toBe(own);
    expect(await api.join(threadId, byOwn.run_id)).toMatchObject({ context: { who: "me" } });
  });

  test("without input continues with an empty one if the graph allows that", async () => {
    const threadId = await api.aThread();
    const result = await api.aFinishedRun(threadId, { assistant_id: "counter", input: { count: 4 } });
    expect(result["count"]).toBe(5);
    const again = await api.aFinishedRun(threadId, { assistant_id: "counter", input: {} });
    expect(again["count"]).toBe(6);
  });

  test("ignores unknown fields and stream modes", async () => {
    const threadId = await api.aThread();
    const answer = await api.post<Result>(`/threads/${threadId}/runs/wait`, {
      assistant_id: "counter",
      input: { count: 1 },
      stream_mode: ["values", "no-such-mode"],
      from_the_future: { a: 1 },
    });
    expect(answer).toMatchObject({ status: 200, body: { count: 2 } });
  });
});

test("an input that the graph does not take ends the run with an error that names the field", async () => {
  for (const input of ["hello", ["hello"], 5, null]) {
    const { body } = await api.post<{ __error__: { message: string } }>("/runs/wait", {
      assistant_id: "counter",
      input,
    });
    expect(body.__error__.message).toMatch(/^'input' does not fit the graph: /);
  }
});

describe("the graph of a run receives", () => {
  test("the active version of its assistant: an update applies from the next run on, also back to an old version", async () => {
    const id = await anAssistant({ name: "versioned", context: { style: "one", extra: true } });
    const context = async () => (await mirrored({ assistant_id: id })).context;
    expect(await context()).toEqual({ style: "one", extra: true });
    await api.patch(`/assistants/${id}`, { context: { style: "two" } });
    expect(await context()).toEqual({ style: "two" });
    await api.post(`/assistants/${id}/latest`, { version: 1 });
    expect(await context()).toEqual({ style: "one", extra: true });
  });

  test("the version that was active at the run's creation, even if it started later", async () => {
    const id = await anAssistant({ name: "patient", context: { style: "one" } });
    const threadId = await api.aThread();
    const blocker = await api.aRun(threadId, { assistant_id: "sleep", input: { milliseconds: 60_000 } });
    const waiting = await api.aRun(threadId, { assistant_id: id, input: {} });
    await api.patch(`/assistants/${id}`, { context: { style: "two" } });
    await api.cancel(threadId, blocker.run_id);
    expect(await api.join(threadId, waiting.run_id)).toMatchObject({ context: { style: "one" } });
  });

  test("the assistant's config and metadata, overridden by the thread's metadata and the request's", async () => {
    const id = await anAssistant({
      name: "configured",
      config: { tags: ["assistant"], configurable: { a: "assistant", b: "assistant" } },
      metadata: { from: "assistant", assistant: true },
    });
    const seen = await mirrored(
      {
        assistant_id: id,
        config: { configurable: { b: "request", c: "request" } },
        metadata: { from: "request", request: true },
      },
      { metadata: { from: "thread", thread: true } },
    );
    expect(seen.configurable).toMatchObject({ a: "assistant", b: "request", c: "request" });
    expect(seen.metadata).toMatchObject({ from: "request", assistant: true, thread: true, request: true });
    expect(seen.tags).toEqual(["assistant"]);
  });

  test("the request's context over the assistant's, key by key", async () => {
    const id = await anAssistant({ name: "contextual", context: { a: 1, b: 1 } });
    const seen = await mirrored({ assistant_id: id, context: { b: 2 } });
    expect(seen.context).toEqual({ a: 1, b: 2 });
  });

  const SERVERS_KEYS = {
    thread_id: MISSING,
    thread_ts: MISSING,
    run_id: MISSING,
    assistant_id: MISSING,
    graph_id: "other",
    checkpoint_ns: "elsewhere",
    checkpoint_map: { "": MISSING },
    langgraph_auth_user: { identity: "admin" },
    langgraph_auth_user_id: "admin",
    langgraph_auth_permissions: ["all"],
    __pregel_resuming: true,
    __pregel_read: {},
    __pregel_checkpointer: {},
    mine: "kept",
  };
  // A run's context is also in its configurable.
  test.each([
    ["config", { config: { configurable: SERVERS_KEYS } }],
    ["context", { context: { ...SERVERS_KEYS, checkpoint_id: MISSING } }],
  ])("the run's own ids, and none of the server's keys that a client set as %s", async (_, fields) => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, {
      assistant_id: "mirror",
      input: {},
      ...fields,
      metadata: { run_id: MISSING },
    });
    const { configurable, metadata } = (await api.join(threadId, run.run_id)) as unknown as Mirrored;
    expect(configurable).toMatchObject({
      thread_id: threadId,
      run_id: run.run_id,
      assistant_id: run.assistant_id,
      graph_id: "mirror",
      mine: "kept",
    });
    expect(Object.keys(configurable).filter((key) => key.startsWith("langgraph_auth"))).toEqual([]);
    expect(String(configurable["checkpoint_ns"] ?? "")).not.toContain("elsewhere");
    expect(configurable).not.toHaveProperty("thread_ts");
    expect(configurable["checkpoint_map"] ?? {}).not.toHaveProperty("", MISSING);
    expect(metadata).toMatchObject({ run_id: run.run_id, thread_id: threadId });
    expect((await api.state(threadId)).checkpoint?.thread_id).toBe(threadId);
  });
});

test("a thread can be read and searched although its factory makes no graph without a run's config", async () => {
  const threadId = await api.aThread();
  const result = await api.aFinishedRun(threadId, {
    assistant_id: "particular",
    input: {},
    config: { configurable: { language: "french" } },
  });
  expect(result).toEqual({ text: "FRENCH" });
  expect((await api.state(threadId)).values).toEqual({ text: "FRENCH" });
  const { status, body } = await api.post<ThreadRecord[]>("/threads/search", { ids: [threadId] });
  expect({ status, values: body[0]?.values }).toEqual({ status: 200, values: { text: "FRENCH" } });
});

describe("a run can't be created with", () => {
  const cases = [
    ["a missing thread", `/threads/${MISSING}/runs`, { assistant_id: "counter" }, 404, MISSING],
    [
      "a max_concurrency with which LangGraph would start nothing",
      `/threads/${MISSING}/runs`,
      { assistant_id: "counter", config: { max_concurrency: 0 } },
      422,
      "'config.max_concurrency'",
    ],
    [
      "a missing thread, streamed",
      `/threads/${MISSING}/runs/stream`,
      { assistant_id: "counter" },
      404,
      MISSING,
    ],
    [
      "a missing thread, waited for",
      `/threads/${MISSING}/runs/wait`,
      { assistant_id: "counter" },
      404,
      MISSING,
    ],
    ["no assistant_id", "/runs", { input: {} }, 422, "assistant_id"],
    ["a missing assistant, threadless", "/runs/wait", { assistant_id: MISSING }, 404, MISSING],
    ["an unknown graph, threadless", "/runs/stream", { assistant_id: "nobody" }, 404, "nobody"],
    [
      "a strategy that does not exist",
      `/threads/${MISSING}/runs`,
      { assistant_id: "counter", multitask_strategy: "hope" },
      422,
      "multitask_strategy",
    ],
    ["a negative delay", "/runs", { assistant_id: "counter", after_seconds: -1 }, 422, "after_seconds"],
  ] as const;
  test.each(cases)("%s", async (_, path, body, status, named) => {
    const answer = await api.post<Refusal>(path, body);
    expect(answer.status).toBe(status);
    expect(answer.body.detail).toContain(named);
  });

  test.each(["", "/stream", "/wait"])(
    "a missing assistant on a thread (runs%s), which leaves the thread unchanged",
    async (path) => {
      const threadId = await api.aThread();
      const before = await api.thread(threadId);
      for (const assistant_id of [MISSING, "nobody"]) {
        const answer = await api.post<Refusal>(`/threads/${threadId}/runs${path}`, { assistant_id });
        expect(answer.status).toBe(404);
        expect(answer.body.detail).toContain(assistant_id);
      }
      expect(await api.thread(threadId)).toEqual(before);
      expect(await api.runs(threadId)).toEqual([]);
    },
  );

  test("a checkpoint that does not exist", async () => {
    const threadId = await api.aThread();
    const answer = await api.post<Refusal>(`/threads/${threadId}/runs`, {
      assistant_id: "counter",
      checkpoint_id: MISSING,
    });
    expect(answer.status).toBe(404);
    expect(answer.body.detail).toContain(MISSING);
    expect(await api.runs(threadId)).toEqual([]);
  });

  test("a deleted assistant", async () => {
    const id = await anAssistant({ name: "gone" });
    await api.remove(`/assistants/${id}`);
    const threadId = await api.aThread();
    const answer = await api.post<Refusal>(`/threads/${threadId}/runs`, { assistant_id: id });
    expect(answer.status).toBe(404);
    expect(answer.body.detail).toContain(id);
  });
});

describe("if_not_exists", () => {
  test("create creates a missing thread with the requested id", async () => {
    const threadId = crypto.randomUUID();
    const result = await api.aFinishedRun(threadId, {
      assistant_id: "counter",
      input: { count: 1 },
      if_not_exists: "create",
    });
    expect(result["count"]).toBe(2);
    expect(await api.thread(threadId)).toMatchObject({ status: "idle", metadata: { graph_id: "counter" } });
  });

  test("create uses an existing thread", async () => {
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, { assistant_id: "counter", input: { count: 1 } });
    const result = await api.aFinishedRun(threadId, {
      assistant_id: "counter",
      input: {},
      if_not_exists: "create",
    });
    expect(result["count"]).toBe(3);
  });

  test("ten concurrent runs on a missing thread create one thread, and each run is executed", async () => {
    const threadId = crypto.randomUUID();
    const answers = await Promise.all(
      Array.from({ length: 10 }, () =>
        api.post<RunRecord>(`/threads/${threadId}/runs`, {
          assistant_id: "counter",
          input: {},
          if_not_exists: "create",
        }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
    await api.untilQuiet(threadId);
    expect((await api.state(threadId)).values["count"]).toBe(10);
  });

  test("a missing assistant creates no thread", async () => {
    const threadId = crypto.randomUUID();
    const answer = await api.post(`/threads/${threadId}/runs`, {
      assistant_id: "nobody",
      if_not_exists: "create",
    });
    expect(answer.status).toBe(404);
    expect((await api.get(`/threads/${threadId}`)).status).toBe(404);
  });
});

describe("after_seconds", () => {
  test("delays the start, and created_at stays the time of the request", async () => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, { assistant_id: "counter", input: {}, after_seconds: 1 });
    expect(run.status).toBe("pending");
    const before = performance.now();
    await api.join(threadId, run.run_id);
    expect(performance.now() - before).toBeGreaterThan(600);
    const ended = await api.run(threadId, run.run_id);
    expect(ended.status).toBe("success");
    expect(ended.created_at).toBe(run.created_at);
    expect(Date.parse(ended.updated_at) - Date.parse(ended.created_at)).toBeGreaterThanOrEqual(1_000);
  });

  test("lets later runs of the thread go first", async () => {
    const threadId = await api.aThread();
    const delayed = await api.aRun(threadId, { assistant_id: "counter", input: {}, after_seconds: 3_600 });
    expect(await api.aFinishedRun(threadId, { assistant_id: "counter", input: { count: 1 } })).toMatchObject({
      count: 2,
    });
    expect(await api.run(threadId, delayed.run_id)).toMatchObject({ status: "pending" });
    await api.cancel(threadId, delayed.run_id);
    expect(await api.thread(threadId)).toMatchObject({ status: "idle" });
  });
});

describe("the list of a thread's runs", () => {
  test("is newest first, paged, filtered by status, and shows the selected fields", async () => {
    const threadId = await api.aThread();
    const made: string[] = [];
    for (let index = 0; index < 4; index += 1) {
      const run = await api.aRun(threadId, { assistant_id: "counter", input: {} });
      await api.join(threadId, run.run_id);
      made.unshift(run.run_id);
    }
    const failed = await api.aRun(threadId, { assistant_id: "failing", input: {} });
    await api.join(threadId, failed.run_id);
    const waiting = await api.aRun(threadId, { assistant_id: "counter", input: {}, after_seconds: 3_600 });
    const all = [waiting.run_id, failed.run_id, ...made];
    const list = async (query: string) =>
      (await api.get<RunRecord[]>(`/threads/${threadId}/runs?${query}`)).body;
    expect((await list("")).map((run) => run.run_id)).toEqual(all);
    expect((await list("limit=2")).map((run) => run.run_id)).toEqual(all.slice(0, 2));
    expect((await list("limit=2&offset=3")).map((run) => run.run_id)).toEqual(all.slice(3, 5));
    expect((await list("offset=6")).map((run) => run.run_id)).toEqual([]);
    expect((await list("status=success")).map((run) => run.run_id)).toEqual(made);
    expect((await list("status=error")).map((run) => run.run_id)).toEqual([failed.run_id]);
    expect(await list("status=pending&limit=1000&select=run_id&select=kwargs")).toEqual([
      { run_id: waiting.run_id, kwargs: expect.objectContaining({ input: {} }) },
    ]);
    expect(await list(`status=pending&select=${encodeURIComponent('["run_id"]')}`)).toEqual([
      { run_id: waiting.run_id },
    ]);
    await api.cancel(threadId, waiting.run_id);
  });

  test("belongs to its thread: a run can't be reached through another one", async () => {
    const [threadId, other] = [await api.aThread(), await api.aThread()];
    const run = await api.aRun(threadId, { assistant_id: "counter", input: {} });
    await api.join(threadId, run.run_id);
    for (const path of ["", "/join", "/stream"]) {
      const answer = await api.get<Refusal>(`/threads/${other}/runs/${run.run_id}${path}`);
      expect(answer.status).toBe(404);
      expect(answer.body.detail).toContain(run.run_id);
    }
    expect((await api.cancel(other, run.run_id)).status).toBe(404);
    expect((await api.remove(`/threads/${other}/runs/${run.run_id}`)).status).toBe(404);
    expect(await api.runs(other)).toEqual([]);
  });

  test.each([
    [`/threads/${MISSING}/runs`, 404],
    ["/threads/no-uuid/runs", 422],
    [`/threads/${MISSING}/runs?limit=0`, 422],
    [`/threads/${MISSING}/runs?limit=1001`, 422],
    [`/threads/${MISSING}/runs?offset=-1`, 422],
    [`/threads/${MISSING}/runs?status=done`, 422],
  ])("with %s is refused with %i", async (path, status) => {
    const answer = await api.get<Refusal>(path);
    expect(answer.status).toBe(status);
    expect(answer.body.detail).toEqual(expect.any(String));
  });
});

describe("a missing run", () => {
  const path = `/runs/${MISSING}`;
  test.each([
    ["GET", path],
    ["GET", `${path}/join`],
    ["GET", `${path}/stream`],
    ["POST", `${path}/cancel`],
    ["DELETE", path],
  ])("causes a 404 that names it: %s", async (method, suffix) => {
    const threadId = await api.aThread();
    const url = `/threads/${threadId}${suffix}`;
    const answer =
      method === "GET"
        ? await api.get<Refusal>(url)
        : method === "POST"
          ? await api.post<Refusal>(url)
          : await api.remove(url);
    expect(answer.status).toBe(404);
    expect(answer.body?.detail).toContain(MISSING);
  });

  test("causes a 404 by its id alone, too", async () => {
    const answer = await api.get<Refusal>(`/runs/${MISSING}/stream`);
    expect(answer.status).toBe(404);
    expect(answer.body.detail).toContain(MISSING);
  });
});

describe("deleting a run", () => {
  test("removes an ended one and keeps the thread's state", async () => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, { assistant_id: "counter", input: {} });
    await api.join(threadId, run.run_id);
    expect((await api.remove(`/threads/${threadId}/runs/${run.run_id}`)).status).toBe(204);
    expect((await api.get(`/threads/${threadId}/runs/${run.run_id}`)).status).toBe(404);
    expect((await api.state(threadId)).values["count"]).toBe(1);
  });

  test("withdraws a waiting one", async () => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, { assistant_id: "counter", input: {}, after_seconds: 3_600 });
    expect((await api.remove(`/threads/${threadId}/runs/${run.run_id}`)).status).toBe(204);
    expect(await api.runs(threadId)).toEqual([]);
    expect(await api.thread(threadId)).toMatchObject({ status: "idle" });
  });

  test("refuses a running one, which continues", async () => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, { assistant_id: "sleep", input: { milliseconds: 60_000 } });
    expect((await api.remove(`/threads/${threadId}/runs/${run.run_id}`)).status).toBe(409);
    expect(await api.run(threadId, run.run_id)).toMatchObject({ status: "running" });
    await api.cancel(threadId, run.run_id);
  });
});
