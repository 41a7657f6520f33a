import { afterEach, describe, expect, test } from "vitest";
import { apiOf, saying, type Api } from "../helpers/api.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { eventually } from "../helpers/conditions.ts";
import { query } from "../helpers/query.ts";
import { onServer } from "../helpers/servers.ts";

interface Line {
  level: number;
  msg: string;
  run_id: string;
  queue_ms: number;
  exec_ms?: number;
  [field: string]: unknown;
}

const INFO = 30;
const COUNT = { assistant_id: "counter", input: saying("hello") };
const LONG = { assistant_id: "sleep", input: { milliseconds: 600_000 } };

let server: TestServer;
let api: Api;
onServer({ sweepSeconds: 0.2 }, (opened) => ({ server, api } = opened));
afterEach(async () => {
  await api.post("/runs/cancel", { status: "all" });
});

const linesOf = (runId: string, from = server): Line[] =>
  from.lines
    .map((line) => JSON.parse(line) as Line)
    .filter(({ msg, run_id }) => msg === "run ended" && run_id === runId);
const untilLogged = (runId: string, from = server): Promise<Line[]> =>
  eventually(`the end of run ${runId} is in the log`, () => {
    const lines = linesOf(runId, from);
    return Promise.resolve(lines.length > 0 ? lines : undefined);
  });

describe("an ended run is logged in one line", () => {
  test("with its ids, its graph, its waiting time and its duration", async () => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, { ...COUNT, after_seconds: 0.2 });
    await api.untilRunIs(threadId, run.run_id, "success");
    const lines = await untilLogged(run.run_id);
    expect(lines).toEqual([
      {
        level: INFO,
        time: expect.any(Number),
        msg: "run ended",
        run_id: run.run_id,
        thread_id: threadId,
        graph_id: "counter",
        assistant_id: run.assistant_id,
        status: "success",
        attempt: 1,
        queue_ms: expect.any(Number),
        exec_ms: expect.any(Number),
        slowest_node: "increment",
        slowest_node_ms: expect.any(Number),
      },
    ]);
  });

  test("with the class of its error only", async () => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, { assistant_id: "failing", input: saying("hello") });
    const { error } = await api.untilRunIs(threadId, run.run_id, "error");
    const [line] = await untilLogged(run.run_id);
    expect(line).toMatchObject({ status: "error", error_class: error?.error });
    expect(JSON.stringify(line)).not.toContain(error?.message);
    const failures = server.lines.filter(
      (text) => text.includes("the graph failed") && text.includes(run.run_id),
    );
    expect(failures.map((text) => JSON.parse(text) as Line)).toMatchObject([
      { graph_id: "failing", err: { type: "Error", stack: expect.stringContaining("failing.ts:") } },
    ]);
  });

  test("as timeout, when its time is over", async () => {
    const hasty = await startTestServer({ runTimeoutSeconds: 0.2 });
    try {
      const there = apiOf(hasty);
      const threadId = await there.aThread();
      const run = await there.aRun(threadId, LONG);
      const [line] = await untilLogged(run.run_id, hasty);
      expect(line).toMatchObject({ status: "timeout", error_class: "RunTimeoutError" });
      expect(line?.exec_ms).toBeGreaterThanOrEqual(190);
    } finally {
      await hasty.close();
    }
  });

  test.each([
    ["interrupt", "interrupted"],
    ["rollback", "rolled-back"],
  ])("when it is cancelled by %s, running or still waiting", async (action, status) => {
    const threadId = await api.aThread();
    const running = await api.aRun(threadId, LONG);
    const waiting = await api.aRun(threadId, COUNT);
    for (const { run_id: runId } of [waiting, running]) {
      await api.cancel(threadId, runId, `wait=1&action=${action}`);
    }
    expect(await untilLogged(running.run_id)).toMatchObject([{ status, attempt: 1, graph_id: "sleep" }]);
    const lines = await untilLogged(waiting.run_id);
    expect(lines).toMatchObject([{ status, attempt: 0, graph_id: "counter", thread_id: threadId }]);
    expect(lines[0]).not.toHaveProperty("exec_ms");
  });

  test.each(["interrupt", "rollback"])("when another run replaces it by %s", async (strategy) => {
    const threadId = await api.aThread();
    const running = await api.aRun(threadId, LONG);
    const waiting = await api.aRun(threadId, COUNT);
    await api.aFinishedRun(threadId, { ...COUNT, multitask_strategy: strategy });
    for (const { run_id: runId } of [running, waiting]) {
      expect(await untilLogged(runId)).toMatchObject([
        { status: strategy === "interrupt" ? "interrupted" : "rolled-back" },
      ]);
    }
  });

  test("when all runs are cancelled at once", async () => {
    const threadId = await api.aThread();
    const runs = [await api.aRun(threadId, LONG), await api.aRun(threadId, COUNT)];
    await api.post("/runs/cancel", { thread_id: threadId, status: "all" });
    for (const { run_id: runId } of runs) {
      expect(await untilLogged(runId)).toMatchObject([{ status: "interrupted" }]);
    }
  });

  test("when its thread is deleted while it runs", async () => {
    const threadId = await api.aThread();
    const running = await api.aRun(threadId, LONG);
    await api.untilRunIs(threadId, running.run_id, "running");
    await api.remove(`/threads/${threadId}`);
    expect(await untilLogged(running.run_id)).toMatchObject([
      { status: "deleted", attempt: 1, graph_id: "sleep", thread_id: threadId },
    ]);
  });

  test("when another process deletes its thread while it runs", async () => {
    const hasty = await startTestServer({ heartbeatSeconds: 0.1 });
    const other = await startTestServer({ connectionString: hasty.connectionString, role: "api" });
    try {
      const there = apiOf(hasty);
      const threadId = await there.aThread();
      const run = await there.aRun(threadId, LONG);
      await there.untilRunIs(threadId, run.run_id, "running");
      await apiOf(other).remove(`/threads/${threadId}`);
      expect(await untilLogged(run.run_id, other)).toMatchObject([{ status: "deleted" }]);
      await eventually("the run's slot is free", async () => {
        const { body } = await there.get<{ workers: { active: number } }>("/metrics?format=json");
        return body.workers.active === 0;
      });
      expect(linesOf(run.run_id, hasty)).toEqual([]);
    } finally {
      await other.close();
      await hasty.close();
    }
  });

  test("when it has no thread", async () => {
    const { headers } = await api.post("/runs/wait", COUNT);
    const runId = headers.get("content-location")?.split("/").at(-1) ?? "";
    expect(await untilLogged(runId)).toMatchObject([{ status: "success", graph_id: "counter" }]);
  });

  test("when it has lost too many workers", async () => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, { ...COUNT, after_seconds: 3_600 });
    await query(
      server,
      `update threadloom.runs set status = 'running', attempt = 3, lost_attempts = 2, worker_id = 'dead0000-0000-4000-8000-000000000000',
         started_at = now() - interval '1 minute', lease_until = now() - interval '1 minute' where run_id = $1`,
      [run.run_id],
    );
    const [line] = await untilLogged(run.run_id);
    expect(line).toMatchObject({ status: "error", attempt: 3, error_class: "MaxAttemptsError" });
  });
});
