import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { apiOf } from "../../helpers/api.ts";
import { startTestServer, type TestServerOptions } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { startObjectServer, type ObjectServer } from "../../helpers/object-store.ts";
import { query } from "../../helpers/query.ts";

let objects: ObjectServer;
beforeAll(async () => {
  objects = await startObjectServer();
});
afterAll(() => objects.close());

const optionsWith = (connectionString?: string): TestServerOptions => ({
  graphConfigFile: fileURLToPath(new URL("../../engine/events/graphs/langgraph.json", import.meta.url)),
  objectStoreUrl: objects.setup.url,
  objectStoreEndpoint: objects.setup.endpoint,
  ...(connectionString !== undefined && { connectionString }),
});
const REPORT = { assistant_id: "report", input: { step: 0 } };

test("a run on a state with objects waits while the object store is away, and requests get 503", async () => {
  // Executes nothing.
  const first = await startTestServer({ ...optionsWith(), role: "api" });
  try {
    const maker = await startTestServer(optionsWith(first.connectionString));
    const api = apiOf(maker);
    const threadId = await api.aThread();
    const { report } = (await api.aFinishedRun(threadId, REPORT)) as { report: string };
    await maker.close();
    expect(report).toHaveLength(1_000_000);
    const moved = () =>
      query<{ bytes: number }>(
        first,
        `select coalesce(sum(octet_length(content)), 0)::integer as bytes from threadloom.checkpoint_contents
         where thread_id = $1 and octet_length(content) >= 32768`,
        [threadId],
      );
    await eventually("the report is moved", async () => (await moved())[0]?.bytes === 0);
    expect(await objects.keys()).toHaveLength(1);

    // Another server has no part of the state in its memory.
    const second = await startTestServer(optionsWith(first.connectionString));
    try {
      await objects.stop();
      const read = await second.client.get(`/threads/${threadId}/state`);
      expect([read.status, read.body]).toEqual([
        503,
        { detail: "The object store can't be used at the moment." },
      ]);
      const run = await second.client
        .post(`/threads/${threadId}/runs`)
        .send({ ...REPORT, input: { step: 5 } })
        .expect(200);
      const { run_id: runId } = run.body as { run_id: string };
      await eventually("the run is running", async () => {
        const { body } = await second.client.get(`/threads/${threadId}/runs/${runId}`);
        return (body as { status: string }).status === "running";
      });
      await objects.start();
      const joined = await second.client.get(`/threads/${threadId}/runs/${runId}/join`).expect(200);
      expect(joined.body).toMatchObject({ step: 5 });
      const { body } = await second.client.get(`/threads/${threadId}/runs/${runId}`).expect(200);
      expect(body).toMatchObject({ status: "success" });
    } finally {
      await second.close();
    }
    const unset = { ...optionsWith(first.connectionString), objectStoreUrl: undefined };
    await expect(startTestServer(unset)).rejects.toThrow("OBJECT_STORE_URL is not set");
  } finally {
    await objects.start();
    await first.close();
  }
}, 60_000);
