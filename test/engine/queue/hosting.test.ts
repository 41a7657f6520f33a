import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Metrics } from "../../../src/api/status/schemas.ts";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer, type TestServerOptions } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { query } from "../../helpers/query.ts";
import { temporaryFolder, type TemporaryFolder } from "../../helpers/temporary-folder.ts";

const FIXTURES = fileURLToPath(new URL("../../fixtures/", import.meta.url));

let folder: TemporaryFolder;
let database: FreshDatabase;
const servers: TestServer[] = [];
beforeAll(async () => {
  folder = await temporaryFolder();
  database = await freshDatabase();
});
afterEach(async () => {
  for (const server of servers.splice(0).reverse()) await server.close();
  await query(database, "delete from threadloom.threads");
});
afterAll(async () => {
  await database.drop();
  await folder.remove();
});

/** A process of a version with these graphs: their ids, and their fixture files. */
const version = async (graphs: Record<string, string>, options: TestServerOptions = {}): Promise<Api> => {
  const graphConfigFile = join(folder.path, `${Object.keys(graphs).join("-")}.json`);
  const entries = Object.entries(graphs).map(([id, file]) => [id, `${FIXTURES}${file}.ts:graph`]);
  await writeFile(graphConfigFile, JSON.stringify({ graphs: Object.fromEntries(entries) }));
  const { connectionString } = database;
  const server = await startTestServer({ graphConfigFile, connectionString, sweepSeconds: 0.2, ...options });
  servers.push(server);
  return apiOf(server);
};
const waitFor = async (api: Api, threadId: string, runId: string) =>
  await api.untilRunIs(threadId, runId, "success", "error");
const unhosted = async (api: Api): Promise<number | undefined> =>
  (await api.get<Metrics>("/metrics?format=json")).body.queue?.num_unhosted;
const logged = (text: string): boolean =>
  servers.some(({ lines }) => lines.some((line) => line.includes(text)));

describe("runs of a graph that only some processes host", () => {
  test("are executed by those: others neither claim them nor start the ones that they create", async () => {
    const old = await version({ counter: "counter" });
    await version({ counter: "counter", "two-step": "two-step" }, { role: "api" });
    const body = { assistant_id: "two-step", input: { messages: [] } };
    const threads = await Promise.all(Array.from({ length: 6 }, () => old.aThread()));
    // The old process has free slots, and creates the runs.
    const runs = await Promise.all(threads.map((threadId) => old.aRun(threadId, body)));
    expect(runs.map(({ status }) => status)).toEqual(threads.map(() => "pending"));
    await old.aFinishedRun(await old.aThread(), { assistant_id: "counter", input: {} });
    await version({ counter: "counter", "two-step": "two-step" });
    for (const { thread_id, run_id } of runs) {
      expect(await waitFor(old, thread_id, run_id)).toMatchObject({ status: "success" });
    }
  });

  test("wait if no living worker hosts the graph; metrics and the log report it until one does", async () => {
    const before = await version({ "two-step": "two-step" });
    const threadId = await before.aThread();
    const { run_id: runId } = await before.aRun(threadId, {
      assistant_id: "two-step",
      input: { messages: [] },
      after_seconds: 3,
    });
    await servers.pop()?.close();
    const renamed = await version({ "three-step": "two-step" });
    expect(await unhosted(renamed)).toBe(1);
    await eventually("the log says so", () => logged("runs wait for a graph that no worker hosts"));
    expect(await renamed.run(threadId, runId)).toMatchObject({ status: "pending" });
    const back = await version({ "two-step": "two-step" });
    expect(await waitFor(back, threadId, runId)).toMatchObject({ status: "success" });
    expect(await unhosted(renamed)).toBe(0);
  });

  test("that lost their process and have a pending cancel are ended, even if no worker hosts their graph", async () => {
    const before = await version({ sleep: "sleep" });
    const threadId = await before.aThread();
    const run = await before.aRun(threadId, { assistant_id: "sleep", input: {}, after_seconds: 3_600 });
    await servers.pop()?.close();
    await query(
      database,
      `update threadloom.runs set status = 'running', attempt = 1, worker_id = 'dead0000-0000-4000-8000-000000000000', cancel_action = 'interrupt',
         lease_until = now() - interval '1 second' where run_id = $1`,
      [run.run_id],
    );
    const after = await version({ counter: "counter" });
    await after.untilRunIs(threadId, run.run_id, "interrupted");
  });
});

describe("runs that wait behind others of their thread", () => {
  const LONG = { assistant_id: "sleep", input: { messages: [], milliseconds: 600_000 } };
  const COUNT = { assistant_id: "counter", input: {} };

  test.each([
    ["has ended", (api: Api, threadId: string, runId: string) => api.cancel(threadId, runId)],
    [
      "was rolled back",
      (api: Api, threadId: string, runId: string) => api.cancel(threadId, runId, "wait=1&action=rollback"),
    ],
  ])("start in order when the running one %s, long before a sweep", async (_, end) => {
    const api = await version({ sleep: "sleep", counter: "counter" }, { sweepSeconds: 600 });
    const threadId = await api.aThread();
    const first = await api.aRun(threadId, LONG);
    const withdrawn = await api.aRun(threadId, COUNT);
    const others = [await api.aRun(threadId, COUNT), await api.aRun(threadId, COUNT)];
    await api.cancel(threadId, withdrawn.run_id);
    await end(api, threadId, first.run_id);
    for (const { run_id } of others) await api.untilRunIs(threadId, run_id, "success");
    expect((await api.state(threadId)).values["count"]).toBe(2);
  });

  test("start when the first waiting one is withdrawn", async () => {
    const api = await version(
      { sleep: "sleep", counter: "counter" },
      { sweepSeconds: 600, jobsPerWorker: 1 },
    );
    const [busy, threadId] = [await api.aThread(), await api.aThread()];
    const elsewhere = await api.aRun(busy, LONG);
    const first = await api.aRun(threadId, LONG);
    const second = await api.aRun(threadId, COUNT);
    await api.cancel(threadId, first.run_id);
    await api.cancel(busy, elsewhere.run_id);
    await api.untilRunIs(threadId, second.run_id, "success");
  });

  test("start at once if the runs before them are only due later", async () => {
    const api = await version({ counter: "counter" }, { sweepSeconds: 600 });
    const threadId = await api.aThread();
    await api.aRun(threadId, { ...COUNT, after_seconds: 3_600 });
    const run = await api.aRun(threadId, COUNT);
    await api.untilRunIs(threadId, run.run_id, "success");
  });

  test("are found by the sweep when the process that should start them died", async () => {
    const api = await version({ counter: "counter" }, { role: "api", sweepSeconds: 600 });
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, COUNT);
    await query(database, "update threadloom.runs set behind = true where run_id = $1", [run.run_id]);
    await version({ counter: "counter" });
    await api.untilRunIs(threadId, run.run_id, "success");
  });
});
