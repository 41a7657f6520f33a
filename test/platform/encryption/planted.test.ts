import { afterAll, beforeAll, expect, test } from "vitest";
import { apiOf, saying, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { cipherOf, keysOf } from "../../helpers/encryption.ts";
import { query } from "../../helpers/query.ts";

/** A user with read access to the database writes copied encrypted text through the API: it stays plain text, and reveals nothing. */

const KEY = "a key of a test, of 32 bytes ...";
const SAID = "canary-31c0-said";

let server: TestServer;
let api: Api;
/** Another user's run arguments, as a backup contains them. */
let found: string;
beforeAll(async () => {
  server = await startTestServer({ encryptionKeys: keysOf(KEY) });
  api = apiOf(server);
  await api.aRun(await api.aThread(), { assistant_id: "counter", input: saying(SAID) });
  const [row] = await query<{ input: string }>(
    server,
    "select kwargs ->> 'input' as input from threadloom.runs limit 1",
  );
  found = row?.input ?? "";
  expect(found).toMatch(/^enc1:/);
});
afterAll(() => server.close());

test("copied text in metadata, and in run arguments beside the input, is shown as it was written", async () => {
  const planted = { x: found, deep: [{ y: found }], [found]: "a key" };
  const threadId = await api.aThread({ metadata: planted });
  await api.patch(`/threads/${threadId}`, { metadata: { patched: found } });
  const metadata = { ...planted, patched: found };
  const assistant = await api.post<{ assistant_id: string }>("/assistants", {
    graph_id: "counter",
    metadata: planted,
    context: { [found]: found },
  });
  const cron = await api.post("/runs/crons", {
    assistant_id: "counter",
    schedule: "0 0 1 1 *",
    metadata: planted,
  });
  const run = await api.post<{ run_id: string }>(`/threads/${threadId}/runs`, {
    assistant_id: assistant.body.assistant_id,
    input: saying("hello"),
    metadata: planted,
    config: { tags: [found], configurable: { [found]: found, z: { w: found } } },
    interrupt_before: [found],
    feedback_keys: [found],
  });
  const runId = run.body.run_id;
  await api.get(`/threads/${threadId}/runs/${runId}/join`);
  const shown = [
    await api.get(`/threads/${threadId}`),
    await api.post("/threads/search", { metadata: { assistant_id: assistant.body.assistant_id } }),
    await api.get(`/threads/${threadId}/runs/${runId}`),
    await api.get(`/threads/${threadId}/runs`),
    await api.get(`/threads/${threadId}/state`),
    await api.get(`/threads/${threadId}/history`),
    await api.get(`/assistants/${assistant.body.assistant_id}`),
    await api.post("/assistants/search", {}),
    await api.post("/runs/crons/search", {}),
    assistant,
    cron,
    run,
  ];
  for (const { status, text } of shown) {
    expect(status).toBe(200);
    expect(text).not.toContain(SAID);
  }
  expect(shown[0]?.body).toMatchObject({ metadata });
  expect(shown[2]?.body).toMatchObject({
    status: "success",
    metadata,
    kwargs: { interrupt_before: [found] },
  });
  expect(shown[4]?.body).toMatchObject({ metadata: planted });
});

test("a damaged value, written directly to the database, does not stop a run or a page", async () => {
  const { keyId } = cipherOf(KEY);
  const damaged = { x: `enc1:${keyId}:AAAA` };
  const threadId = await api.aThread();
  await query(server, "update threadloom.threads set metadata = $2 where thread_id = $1", [
    threadId,
    damaged,
  ]);
  const { run_id: runId } = await api.aRun(threadId, { assistant_id: "counter", input: saying("hello") });
  expect(await api.untilRunIs(threadId, runId, "success")).toMatchObject({ metadata: damaged });
  const page = await api.post<{ thread_id: string }[]>("/threads/search", {});
  expect(page.body).toContainEqual(expect.objectContaining({ thread_id: threadId }));
  const logged = server.lines.filter((line) => line.includes("looks encrypted"));
  expect(logged).toHaveLength(1);
});
