import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { apiOf, saying, type Api, type Refusal, type StateRecord } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { IS_ENCRYPTED } from "../../helpers/encryption.ts";
import { query } from "../../helpers/query.ts";

/** The history of a thread can be filtered by metadata from runs. */

const NOT_FOUND_BY_CONFIGURATION = "Nothing is found by a configuration that is encrypted.";

let server: TestServer;
let api: Api;
let threadId: string;
beforeAll(async () => {
  server = await startTestServer();
  api = apiOf(server);
});
afterAll(async () => await server.close());
beforeEach(async () => {
  threadId = await api.aThread({ metadata: { team: "blue" } });
});

const aRun = (fields: object) =>
  api.aFinishedRun(threadId, { assistant_id: "counter", input: saying("hi"), ...fields });
const found = async (metadata: object): Promise<number> =>
  (await api.post<StateRecord[]>(`/threads/${threadId}/history`, { limit: 100, metadata })).body.length;

test("a history can be filtered by the metadata of runs, and by their configurable keys", async (context) => {
  context.skip(IS_ENCRYPTED, NOT_FOUND_BY_CONFIGURATION);
  await aRun({
    metadata: { experiment: "a", tags: ["x", "y"] },
    config: { configurable: { tone: "dry", depth: 2 } },
  });
  await aRun({ metadata: { experiment: "b" }, config: { configurable: { tone: "warm" } } });
  const counts = [
    { experiment: "a" },
    { experiment: "b" },
    { tags: ["y"] },
    { tone: "dry" },
    { tone: "warm", experiment: "b" },
    { depth: 2, tone: "dry" },
    { team: "blue" },
    { experiment: "c" },
  ].map(found);
  expect(await Promise.all(counts)).toEqual([3, 3, 3, 3, 3, 3, 6, 0]);
  const { metadata } = await api.state(threadId);
  expect(metadata).toMatchObject({ experiment: "b", tone: "warm", team: "blue", step: 4, source: "loop" });
});

test("they include the assistant's metadata and configuration", async (context) => {
  context.skip(IS_ENCRYPTED, NOT_FOUND_BY_CONFIGURATION);
  const { body } = await api.post<{ assistant_id: string }>("/assistants", {
    graph_id: "counter",
    metadata: { owner: "ops" },
    config: { configurable: { tone: "formal" } },
  });
  await aRun({ assistant_id: body.assistant_id });
  expect([await found({ owner: "ops" }), await found({ tone: "formal" })]).toEqual([3, 3]);
  expect(await found({ assistant_id: body.assistant_id, graph_id: "counter" })).toBe(3);
});

test("a caller can't set keys of the server or of LangGraph", async () => {
  const given = {
    source: "me",
    step: "x",
    parents: null,
    writes: 1,
    counters_since_delta_snapshot: { a: [0, "x"] },
    thread_id: "t",
    run_id: "r",
    graph_id: "g",
    assistant_id: "a",
    $type: "date",
    lc: 1,
  };
  const configurable = { ...given, checkpoint_ns: "n", __pregel_x: 1, langgraph_auth_user: "u" };
  await aRun({ metadata: given, config: { configurable } });
  const { metadata } = await api.state(threadId);
  const { run_id: runId, assistant_id: assistantId, ...others } = metadata;
  expect([typeof runId, runId === "r", assistantId === "a"]).toEqual(["string", false, false]);
  expect(others).toEqual({
    source: "loop",
    step: 1,
    parents: {},
    graph_id: "counter",
    created_by: "system",
    team: "blue",
    thread_id: threadId,
  });
  const refusals = await Promise.all(
    ["parents", "step", "counters_since_delta_snapshot"].map((key) =>
      api.patch<Refusal>(`/threads/${threadId}/state`, { metadata: { [key]: null } }),
    ),
  );
  expect(refusals.map(({ status, body }) => [status, body.detail])).toEqual([
    [422, "'metadata': the key 'parents' is reserved."],
    [422, "'metadata': the key 'step' is reserved."],
    [422, "'metadata': the key 'counters_since_delta_snapshot' is reserved."],
  ]);
});

test("long values are left out, so no run stores them with each of its states", async () => {
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`k${index}`, "v".repeat(900)]));
  await aRun({ metadata: { short: "s", long: "l".repeat(2_000), ...many } });
  const { metadata } = await api.state(threadId);
  expect([metadata.short, metadata.long, metadata.k0]).toEqual(["s", undefined, "v".repeat(900)]);
  expect(JSON.stringify(metadata).length).toBeLessThan(9_000);
});

test("a run without metadata stores none", async () => {
  threadId = await api.aThread();
  await aRun({});
  const rows = await query<{ metadata: object }>(
    server,
    "select metadata from threadloom.checkpoints where thread_id = $1 order by seq",
    [threadId],
  );
  expect(rows.map(({ metadata }) => metadata)).toEqual([{ step: -1 }, { step: 0 }, { step: 1 }]);
});
