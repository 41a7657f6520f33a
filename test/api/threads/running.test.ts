import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { PATIENTLY } from "../../helpers/conditions.ts";
import type { State, Thread } from "./threads-room.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

let server: TestServer;
let database: Database;
beforeAll(async () => {
  server = await startTestServer();
  database = openTestDatabase(server.connectionString);
});
afterAll(async () => {
  await database.close();
  await server.close();
});

/** A thread whose run continues until it is stopped, and has written its first checkpoints. */
const aBusyThread = async (): Promise<string> => {
  const { thread_id: id } = (await server.client.post("/threads").send({})).body as Thread;
  const run = await server.client.post(`/threads/${id}/runs`).send({
    assistant_id: "sleep",
    input: { messages: [{ role: "user", content: "hi" }], milliseconds: 60_000 },
  });
  expect(run.status).toBe(200);
  await vi.waitUntil(
    async () => ((await server.client.get(`/threads/${id}/state`)).body as State).next[0] === "sleep",
    PATIENTLY,
  );
  return id;
};

describe("a thread with a running run", () => {
  it("shows the state that the run has reached", async () => {
    const id = await aBusyThread();
    expect((await server.client.get(`/threads/${id}`)).body).toMatchObject({
      status: "busy",
      metadata: { graph_id: "sleep" },
      values: { milliseconds: 60_000 },
    });
    await server.client.delete(`/threads/${id}`);
  });

  it("refuses updates of its state", async () => {
    const id = await aBusyThread();
    const answer = await server.client.post(`/threads/${id}/state`).send({ values: { milliseconds: 1 } });
    expect(answer.status).toBe(409);
    await server.client.delete(`/threads/${id}`);
  });

  it("is copied in its current state: the copy has no run and waits at the same place", async () => {
    const id = await aBusyThread();
    const copy = (await server.client.post(`/threads/${id}/copy`)).body as Thread;
    expect(copy).toMatchObject({ status: "interrupted", values: { milliseconds: 60_000 } });
    expect((await server.client.get(`/threads/${copy.thread_id}/state`)).body).toMatchObject({
      next: ["sleep"],
    });
    expect((await server.client.get(`/threads/${copy.thread_id}/runs`)).body).toEqual([]);
    expect(
      (await server.client.post(`/threads/${copy.thread_id}/state`).send({ values: {}, as_node: "sleep" }))
        .status,
    ).toBe(200);
    await server.client.delete(`/threads/${id}`);
  });

  it("can be deleted: its run stops, and no data of either remains", async () => {
    const id = await aBusyThread();
    expect((await server.client.delete(`/threads/${id}`)).status).toBe(204);
    expect((await server.client.get(`/threads/${id}`)).status).toBe(404);
    const active = async () => {
      const metrics = (await server.client.get("/metrics?format=json")).body as {
        workers: { active: number };
      };
      return metrics.workers.active;
    };
    await vi.waitUntil(async () => (await active()) === 0, PATIENTLY);
    for (const table of ["runs", "checkpoints", "checkpoint_writes", "checkpoint_contents"]) {
      const rows = await database.query<{ count: string }>(
        `select count(*) from threadloom.${table} where thread_id = $1`,
        [id],
      );
      expect([table, rows[0]?.count]).toEqual([table, "0"]);
    }
  });
});
