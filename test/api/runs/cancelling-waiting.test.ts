import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { isSomeWaiting } from "../../helpers/locks.ts";

let server: TestServer;
let api: Api;
beforeAll(async () => {
  // Without workers and sweeps, waiting runs keep waiting.
  server = await startTestServer({ role: "api", sweepSeconds: 3_600 });
  api = apiOf(server);
});
afterAll(() => server?.close());

const rowOf = async (runId: string) => {
  const [row] = await query<{ status: string; cancel_action: string | null }>(
    server,
    "select status, cancel_action from threadloom.runs where run_id = $1",
    [runId],
  );
  return row;
};

describe("a waiting run", () => {
  test("can't be cancelled through another thread", async () => {
    const [threadId, other] = [await api.aThread(), await api.aThread()];
    const run = await api.aRun(threadId, { assistant_id: "counter" });
    const answer = await server.client.post(`/threads/${other}/runs/${run.run_id}/cancel`);
    expect(answer.status).toBe(404);
    expect(await rowOf(run.run_id)).toEqual({ status: "pending", cancel_action: null });
  });

  test("is asked to stop, not ended, if a worker takes it in the moment of its cancel", async () => {
    const run = await api.aRun(await api.aThread(), { assistant_id: "counter" });
    const worker = new pg.Client({ connectionString: server.connectionString });
    await worker.connect();
    try {
      await worker.query("begin");
      await worker.query(
        `update threadloom.runs set status = 'running', attempt = 1, worker_id = 'dead0000-0000-4000-8000-000000000000',
           lease_until = now() + interval '1 hour' where run_id = $1`,
        [run.run_id],
      );
      const cancelled = server.client.post(`/threads/${run.thread_id}/runs/${run.run_id}/cancel`).then();
      await eventually("the cancellation waits for the worker", () =>
        isSomeWaiting((text) => query(server, text)),
      );
      await worker.query("commit");
      expect((await cancelled).status).toBe(202);
    } finally {
      await worker.end();
    }
    expect(await rowOf(run.run_id)).toEqual({ status: "running", cancel_action: "interrupt" });
  });

  test("restores the thread's configuration that it had replaced when it is rolled back", async () => {
    const threadId = await api.aThread();
    const withConfig = (tone: string) => ({ assistant_id: "counter", config: { configurable: { tone } } });
    await api.aRun(threadId, withConfig("before"));
    const configOf = async () =>
      (
        await query<{ config: object }>(
          server,
          "select config from threadloom.threads where thread_id = $1",
          [threadId],
        )
      )[0]?.config;
    const before = await configOf();
    const run = await api.aRun(threadId, withConfig("after"));
    expect(await configOf()).not.toEqual(before);
    await api.cancel(threadId, run.run_id, "action=rollback");
    expect(await configOf()).toEqual(before);
    expect(await rowOf(run.run_id)).toBeUndefined();
  });

  test("removes the thread created for it, and no other", async () => {
    const other = await api.aThread();
    const run = (await server.client.post("/runs").send({ assistant_id: "counter" })).body as {
      thread_id: string;
      run_id: string;
    };
    await api.cancel(run.thread_id, run.run_id);
    const threads = await query<{ thread_id: string }>(server, "select thread_id from threadloom.threads");
    const ids = threads.map((thread) => thread.thread_id);
    expect(ids).toContain(other);
    expect(ids).not.toContain(run.thread_id);
  });

  test("restarts its thread's time to live, if it has one", async () => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, { assistant_id: "counter" });
    await query(
      server,
      "update threadloom.threads set ttl_minutes = 5, expires_at = now() - interval '1 minute' where thread_id = $1",
      [threadId],
    );
    await api.cancel(threadId, run.run_id);
    const [row] = await query<{ later: boolean }>(
      server,
      "select expires_at > now() as later from threadloom.threads where thread_id = $1",
      [threadId],
    );
    expect(row).toEqual({ later: true });
  });
});
