import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiOf, saying } from "../helpers/api.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";

let worker: TestServer;
let front: TestServer;
beforeAll(async () => {
  front = await startTestServer({ role: "api" });
  worker = await startTestServer({ role: "worker", connectionString: front.connectionString });
});
afterAll(async () => {
  await worker.close();
  await front.close();
});

describe("roles", () => {
  test("a worker serves its health and nothing else", async () => {
    expect((await fetch(`${worker.url}/ok`)).status).toBe(200);
    expect((await fetch(`${worker.url}/threads`, { method: "POST", body: "{}" })).status).toBe(404);
  });

  test("a run accepted by an api process is executed by a worker", async () => {
    const api = apiOf(front);
    const threadId = await api.aThread();
    const values = await api.aFinishedRun(threadId, { assistant_id: "two-step", input: saying("hi") });
    expect(values).toHaveProperty("messages");
  });
});
