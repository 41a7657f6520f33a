import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { Client } from "sdk-1.15";
import type { RunRecord } from "../../../src/api/runs/schemas.ts";
import { apiOf, saying, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { openStream } from "../../helpers/server-sent-events.ts";

/** A run's record shows why it was cancelled. */

const LONG = { assistant_id: "sleep", input: { ...saying("begin"), milliseconds: 600_000 } };
const SHORT = { assistant_id: "counter", input: {} };

let server: TestServer;
let api: Api;
let client: Client;
beforeAll(async () => {
  server = await startTestServer();
  api = apiOf(server);
  client = new Client({ apiUrl: server.url, apiKey: "unused" });
});
afterEach(async () => {
  await api.post("/runs/cancel", { status: "all" });
});
afterAll(() => server.close());

const twoRuns = async (): Promise<{ threadId: string; running: RunRecord; waiting: RunRecord }> => {
  const threadId = await api.aThread();
  const running = await api.aRun(threadId, LONG);
  return { threadId, running, waiting: await api.aRun(threadId, SHORT) };
};
const reasonOf = async (threadId: string, run: RunRecord): Promise<string | null> =>
  (await api.untilRunIs(threadId, run.run_id, "interrupted")).cancel_reason;

test("the SDK's reason `taken` is stored with the run, whether it waited or was running", async () => {
  const { threadId, running, waiting } = await twoRuns();
  expect(await api.run(threadId, waiting.run_id)).toMatchObject({ cancel_reason: null });
  for (const run of [waiting, running]) {
    await client.runs.cancel(threadId, run.run_id, true, "interrupt", { reason: "taken" });
    expect(await reasonOf(threadId, run)).toMatch(/^taken: /);
  }
});

test("a request without a reason, one for several runs, a newer run and a disconnected client have different reasons", async () => {
  const single = await twoRuns();
  await api.cancel(single.threadId, single.waiting.run_id);
  await api.post("/runs/cancel", { run_ids: [single.running.run_id] });
  for (const run of [single.waiting, single.running])
    expect(await reasonOf(single.threadId, run)).toMatch(/^requested: /);

  const replaced = await twoRuns();
  await api.aRun(replaced.threadId, { ...SHORT, multitask_strategy: "interrupt" });
  for (const run of [replaced.waiting, replaced.running])
    expect(await reasonOf(replaced.threadId, run)).toMatch(/^replaced: /);

  const threadId = await api.aThread();
  const stream = await openStream(`${server.url}/threads/${threadId}/runs/stream`, {
    body: { ...LONG, on_disconnect: "cancel" },
  });
  await stream.until(({ event }) => event === "metadata");
  const [left] = await api.runs(threadId);
  stream.close();
  expect(await reasonOf(threadId, left!)).toMatch(/^disconnected: /);
});

test("a run that was not cancelled has none, also one that stopped for an interrupt or before a node", async () => {
  const threadId = await api.aThread();
  await api.aFinishedRun(threadId, { ...SHORT, interrupt_before: "*" });
  await api.aFinishedRun(threadId, SHORT);
  const runs = await api.runs(threadId);
  expect(runs.map(({ cancel_reason }) => cancel_reason)).toEqual([null, null]);
});

test("lists and searches show it, and select accepts no unknown field", async () => {
  const { threadId, waiting } = await twoRuns();
  await client.runs.cancel(threadId, waiting.run_id, true, "interrupt", { reason: "taken" });
  const shown = await client.runs.list(threadId, { status: "interrupted", select: ["cancel_reason"] });
  expect(shown).toEqual([{ cancel_reason: expect.stringMatching(/^taken: /) as string }]);
  const { body } = await api.post("/runs/search", { thread_id: threadId, status: "interrupted" });
  expect(body).toMatchObject([{ run_id: waiting.run_id, cancel_reason: shown[0]?.cancel_reason }]);
});
