import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { apiOf, type Api, type Result, type ThreadRecord } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { factoryCalls, type FactoryCall } from "./graphs/calls.ts";

/** The graph `reviewed` has a review by a person only if its factory receives a `reviewer`. */

const REVIEWED = { assistant_id: "reviewed", input: {} };
const BY_ANN = { config: { configurable: { reviewer: "Ann" } } };

let server: TestServer;
let api: Api;
beforeAll(async () => {
  server = await startTestServer({
    graphConfigFile: fileURLToPath(new URL("./graphs/langgraph.json", import.meta.url)),
  });
  api = apiOf(server);
});
beforeEach(() => {
  factoryCalls().length = 0;
});
afterAll(() => server.close());

const configOf = async (threadId: string): Promise<unknown> =>
  (await api.get<{ config: unknown }>(`/threads/${threadId}`)).body.config;
const aWaitingThread = async (given: object = BY_ANN): Promise<string> => {
  const threadId = await api.aThread();
  const asked = await api.aFinishedRun(threadId, { ...REVIEWED, ...given });
  expect(asked.__interrupt__).toMatchObject([{ value: "Ann?" }]);
  return threadId;
};
const anAssistant = async (fields: object): Promise<string> =>
  (await api.post<{ assistant_id: string }>("/assistants", { graph_id: "reviewed", ...fields })).body
    .assistant_id;

describe("the configuration of a run for its graph", () => {
  test.each([
    ["config", BY_ANN],
    ["context", { context: { reviewer: "Ann" } }],
  ])("as %s is stored: a person's answer reaches the graph with the interrupt", async (_, given) => {
    const threadId = await aWaitingThread(given);
    const resumed = await api.aFinishedRun(threadId, {
      assistant_id: "reviewed",
      command: { resume: "fine" },
    });
    expect(resumed).toEqual({ draft: "A draft", answer: "fine", reviewer: "Ann" });
    expect(await api.thread(threadId)).toMatchObject({
      status: "idle",
      values: { answer: "fine", reviewer: "Ann" },
    });
  });

  test("is shown with the thread, without the server's keys and without the start of one run", async () => {
    const threadId = await aWaitingThread({
      config: {
        tags: ["once"],
        recursion_limit: 50,
        configurable: { reviewer: "Ann", thread_id: "mine", langgraph_auth_user: "root" },
      },
      context: { tone: "warm" },
    });
    expect(await configOf(threadId)).toEqual({
      configurable: { reviewer: "Ann" },
      context: { tone: "warm" },
    });
  });

  test("is stored by key, the newest of each", async () => {
    const threadId = await aWaitingThread();
    for (const configurable of [{ tone: "warm", depth: 1 }, { tone: "cold" }, {}]) {
      await api.aFinishedRun(threadId, { ...REVIEWED, config: { configurable } });
    }
    await api.aFinishedRun(threadId, REVIEWED);
    expect(await configOf(threadId)).toEqual({
      configurable: { reviewer: "Ann", tone: "cold", depth: 1 },
    });
    expect(factoryCalls().at(-1)?.configurable).toMatchObject({ reviewer: "Ann", tone: "cold", depth: 1 });
  });

  test("ranks between the assistant's and the next request's, and does not change the assistant", async () => {
    const assistantId = await anAssistant({
      config: { configurable: { reviewer: "Ann", tone: "plain", depth: 1 } },
      context: { model: "small" },
    });
    const threadId = await api.aThread();
    const run = (more: object) =>
      api.aFinishedRun(threadId, { assistant_id: assistantId, input: {}, ...more });
    await run({ config: { configurable: { tone: "warm" } } });
    expect(await configOf(threadId)).toEqual({ configurable: { tone: "warm" } });
    // A new version of the assistant applies to later runs on the thread, too.
    await api.patch(`/assistants/${assistantId}`, {
      config: { configurable: { reviewer: "Bob", tone: "plain", depth: 2 } },
      context: { model: "large" },
    });
    await run({ config: { configurable: { depth: 3 } }, context: { model: "tiny" } });
    const given = factoryCalls().filter(({ accessContext }) => accessContext === "threads.create_run");
    expect(given.at(-1)).toMatchObject({
      configurable: { reviewer: "Bob", tone: "warm", depth: 3 },
      context: { model: "tiny" },
    });
    await api.state(threadId);
    expect(factoryCalls().at(-1)).toMatchObject({
      accessContext: "threads.read",
      configurable: { reviewer: "Bob", tone: "warm", depth: 3, model: "tiny", assistant_id: assistantId },
      context: { model: "tiny" },
    });
  });

  test("is removed with the run by a rollback", async () => {
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, { ...REVIEWED, config: { configurable: { tone: "warm" } } });
    const { run_id: later } = await api.aRun(threadId, {
      ...REVIEWED,
      config: { configurable: { tone: "cold", depth: 2 } },
      after_seconds: 3_600,
    });
    expect(await configOf(threadId)).toEqual({ configurable: { tone: "cold", depth: 2 } });
    await api.cancel(threadId, later, "wait=1&action=rollback");
    expect(await configOf(threadId)).toEqual({ configurable: { tone: "warm" } });
  });

  test("is restored when two runs are rolled back one after the other", async () => {
    const threadId = await api.aThread();
    const [first, second] = [
      await api.aRun(threadId, { ...REVIEWED, ...BY_ANN, after_seconds: 3_600 }),
      await api.aRun(threadId, { ...REVIEWED, context: { tone: "cold" }, after_seconds: 3_600 }),
    ];
    expect(await configOf(threadId)).toEqual({ ...BY_ANN.config, context: { tone: "cold" } });
    for (const { run_id: runId } of [first, second]) {
      await api.cancel(threadId, runId, "wait=1&action=rollback");
    }
    expect(await configOf(threadId)).toEqual({});
  });

  test.each([[{ if_not_exists: "create" }], [{ thread: "there" }]])(
    "is stored at once with %j",
    async (how) => {
      const threadId = "thread" in how ? await api.aThread() : crypto.randomUUID();
      await api.aRun(threadId, { ...REVIEWED, ...BY_ANN, ...how, after_seconds: 3_600 });
      expect(await configOf(threadId)).toEqual(BY_ANN.config);
    },
  );
});

describe("outside of a run a thread uses the graph of its runs", () => {
  const ASKED = { next: ["review"], values: { draft: "A draft" } };

  test("in its state and its history", async () => {
    const threadId = await aWaitingThread();
    expect(await api.state(threadId)).toMatchObject(ASKED);
    expect((await api.history(threadId))[0]).toMatchObject(ASKED);
    await api.aFinishedRun(threadId, { assistant_id: "reviewed", command: { resume: "fine" } });
    expect((await api.state(threadId)).values).toEqual({ draft: "A draft", answer: "fine", reviewer: "Ann" });
  });

  test("in a search", async () => {
    const threadId = await aWaitingThread();
    await api.aFinishedRun(threadId, { assistant_id: "reviewed", command: { resume: "fine" } });
    const { body } = await api.post<ThreadRecord[]>("/threads/search", {
      ids: [threadId, await api.aThread()],
      values: { reviewer: "Ann" },
    });
    expect(body.map(({ values }) => values)).toEqual([{ draft: "A draft", answer: "fine", reviewer: "Ann" }]);
  });

  test("in an update of its state", async () => {
    const threadId = await aWaitingThread();
    const { status } = await api.post(`/threads/${threadId}/state`, {
      values: { answer: "by hand", reviewer: "Ann" },
      as_node: "review",
    });
    expect(status).toBe(200);
    expect(await api.state(threadId)).toMatchObject({
      next: [],
      values: { draft: "A draft", answer: "by hand", reviewer: "Ann" },
    });
  });

  test("in a copy", async () => {
    const threadId = await aWaitingThread();
    const { body: copy } = await api.post<ThreadRecord>(`/threads/${threadId}/copy`);
    expect(copy).toMatchObject({ status: "interrupted", config: BY_ANN.config });
    const resumed: Result = await api.aFinishedRun(copy.thread_id, {
      assistant_id: "reviewed",
      command: { resume: "a copy" },
    });
    expect(resumed).toMatchObject({ answer: "a copy" });
  });

  test("whatever assistant its metadata name", async () => {
    const threadId = await aWaitingThread();
    for (const assistant_id of ["no id", crypto.randomUUID(), 7]) {
      await api.patch(`/threads/${threadId}`, { metadata: { assistant_id } });
      expect(await api.state(threadId)).toMatchObject(ASKED);
    }
  });
});

describe("a factory receives the purpose of its graph", () => {
  const lastCall = (): Pick<FactoryCall, "accessContext" | "executionRuntime"> | undefined => {
    const call = factoryCalls().at(-1);
    return call && { accessContext: call.accessContext, executionRuntime: call.executionRuntime };
  };

  test("a run, with its context", async () => {
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, { ...REVIEWED, context: { tone: "warm" } });
    expect(lastCall()).toEqual({
      accessContext: "threads.create_run",
      executionRuntime: { context: { tone: "warm" } },
    });
  });

  test.each<[string, string, (threadId: string) => Promise<unknown>]>([
    ["threads.read", "a state", (threadId) => api.state(threadId)],
    ["threads.read", "a history", (threadId) => api.history(threadId)],
    ["threads.read", "a copy", (threadId) => api.post(`/threads/${threadId}/copy`)],
    ["assistants.read", "schemas", () => api.get("/assistants/reviewed/schemas")],
    ["assistants.read", "a drawing", () => api.get("/assistants/reviewed/graph")],
    ["assistants.read", "subgraphs", () => api.get("/assistants/reviewed/subgraphs")],
  ])("%s for %s", async (accessContext, _, read) => {
    const threadId = await aWaitingThread();
    factoryCalls().length = 0;
    await read(threadId);
    expect(lastCall()).toEqual({ accessContext, executionRuntime: null });
  });

  test("threads.update for an update", async () => {
    const threadId = await aWaitingThread();
    factoryCalls().length = 0;
    await api.post(`/threads/${threadId}/state`, { values: { draft: "Another" } });
    expect(factoryCalls()[0]).toMatchObject({ accessContext: "threads.update", executionRuntime: null });
  });
});
