import { Client as Client112 } from "@langchain/langgraph-sdk";
import { Client as Client115 } from "sdk-1.15";
import { afterAll, beforeAll, expect, test } from "vitest";
import { apiOf, saying } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";

/** Two lines of the SDK create crons, which then run. */

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => {
  await server.close();
});

test.each([
  ["1.12.4", Client112],
  ["1.15", Client115],
])("every cron method of the SDK works: %s", async (line, Client) => {
  const { crons, threads, runs } = new Client({ apiUrl: server.url });
  const metadata = { line };
  const { thread_id } = await threads.create();
  const input = saying("hello");
  const cron = await crons.create("agent", {
    schedule: "0 0 1 1 *",
    timezone: "Europe/Berlin",
    input,
    metadata,
  });
  const ofThread = await crons.createForThread(thread_id, "agent", {
    schedule: "@yearly",
    input,
    metadata,
    multitaskStrategy: "interrupt",
    endTime: "2100-01-01T00:00:00Z",
  });
  expect(ofThread).toMatchObject({ thread_id, schedule: "@yearly", metadata });

  expect(await crons.count({ assistantId: cron.assistant_id, metadata })).toBe(2);
  const found = await crons.search({ metadata, sortBy: "created_at", sortOrder: "asc" });
  expect(found.map(({ cron_id }) => cron_id)).toEqual([cron.cron_id, ofThread.cron_id]);
  const [selected] = await crons.search({ threadId: thread_id, select: ["cron_id", "timezone"] });
  expect(selected).toEqual({ cron_id: ofThread.cron_id, timezone: null });

  await crons.update(ofThread.cron_id, { endTime: null, enabled: false });
  const [disabled] = await crons.search({ enabled: false, metadata });
  expect(disabled).toMatchObject({ cron_id: ofThread.cron_id, end_time: null, next_run_date: null });
  await crons.update(ofThread.cron_id, { enabled: true });

  await query(server, "update threadloom.crons set next_run_date = now() where cron_id = $1", [
    ofThread.cron_id,
  ]);
  const run = await eventually("the cron has run", async () => (await runs.list(thread_id))[0]);
  expect(run.metadata).toMatchObject({ ...metadata, cron_id: ofThread.cron_id });
  await runs.join(thread_id, run.run_id);
  expect(await apiOf(server).thread(thread_id)).toMatchObject({ status: "idle" });

  for (const { cron_id } of found) await crons.delete(cron_id);
  expect(await crons.count({ metadata })).toBe(0);
});
