import pg from "pg";
import { describe, expect, test } from "vitest";
import type { RunRecord } from "../../../src/api/runs/schemas.ts";
import { saying, textsOf, type Api, type Refusal, type ThreadRecord } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { isAtGate, openGate } from "../../fixtures/gates.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { dataOf, openStream } from "../../helpers/server-sent-events.ts";
import { onTwoServers } from "../../helpers/servers.ts";
import { isSomeWaiting } from "../../helpers/locks.ts";

const MISSING = "00000000-0000-4000-8000-000000000000";
const LONG = { assistant_id: "sleep", input: { ...saying("begin"), milliseconds: 600_000 } };
/** Less than a lease, and far more than a busy machine needs. */
const PROMPTLY_MS = 8_000;

let server: TestServer;
let api: Api;
let other: Api;
onTwoServers((servers) => ({ server, api, other } = servers));

const aRunInProgress = async (body: object = LONG): Promise<RunRecord> => {
  const run = await api.aRun(await api.aThread(), body);
  await eventually("the graph has begun", async () => (await api.history(run.thread_id)).length > 0);
  return await api.untilRunIs(run.thread_id, run.run_id, "running");
};
const freeSlots = async (): Promise<number> => {
  const { body } = await api.get<{ workers?: { max: number; active: number } }>("/metrics?format=json");
  return (body.workers?.max ?? 0) - (body.workers?.active ?? 0);
};

const places = [
  ["the server that executes the run", () => api],
  ["another server", () => other],
] as const;

describe.each(places)("cancelling on %s", (where, place) => {
  test("with wait=1 answers 204 when the run has ended as interrupted, with its checkpoints kept", async () => {
    const { thread_id: threadId, run_id: runId } = await aRunInProgress();
    const start = performance.now();
    const answer = await place().cancel(threadId, runId, "wait=1&action=interrupt");
    expect(performance.now() - start).toBeLessThan(PROMPTLY_MS);
    expect([answer.status, answer.text]).toEqual([204, ""]);
    expect(await api.run(threadId, runId)).toMatchObject({ status: "interrupted" });
    const state = await api.state(threadId);
    expect(textsOf(state.values.messages)).toEqual(["begin"]);
    expect(state.next).toEqual(["sleep"]);
    expect(await api.thread(threadId)).toMatchObject({ status: "interrupted", interrupts: {} });
  });

  test("with wait=0 answers 202 at once, and the run ends soon", async () => {
    const { thread_id: threadId, run_id: runId } = await aRunInProgress();
    const answer = await place().cancel(threadId, runId, "wait=0");
    expect(answer.status).toBe(202);
    await api.untilRunIs(threadId, runId, "interrupted");
  });

  test("with rollback removes the run and its changes", async () => {
    const { thread_id: threadId, run_id: runId } = await aRunInProgress();
    expect((await place().cancel(threadId, runId, "wait=1&action=rollback")).status).toBe(204);
    expect((await api.get(`/threads/${threadId}/runs/${runId}`)).status).toBe(404);
    expect(await api.history(threadId)).toEqual([]);
    expect(await api.thread(threadId)).toMatchObject({ status: "idle", values: null });
    expect(
      await query(server, "select 1 from threadloom.checkpoints where thread_id = $1", [threadId]),
    ).toEqual([]);
  });

  // A cancel over another server is received at the next heartbeat.
  test("cuts off a run that ignores its signal, and its later results do not count", async () => {
    const [deaf, next] = [`deaf, ${where}`, `next, ${where}`];
    const run = await aRunInProgress({ assistant_id: "gate", input: { label: deaf, deaf: true } });
    await eventually("it is at its gate", () => isAtGate(deaf));
    const stream = await openStream(`${server.url}/threads/${run.thread_id}/runs/${run.run_id}/stream`);
    await place().cancel(run.thread_id, run.run_id, "wait=1");
    expect(isAtGate(deaf)).toBe(true);
    const state = await api.state(run.thread_id);
    expect(state.values["done"]).toEqual([]);
    const after = api.aFinishedRun(run.thread_id, {
      assistant_id: "gate",
      input: { label: next, deaf: false },
    });
    await eventually("the next is at its gate", () => isAtGate(next));
    openGate(deaf);
    // While this run takes its time, the other one tries to write.
    await api.aFinishedRun(await api.aThread(), { assistant_id: "counter", input: {} });
    openGate(next);
    expect(await after).toMatchObject({ done: [next] });
    expect(dataOf(await stream.rest(), "custom")).not.toContainEqual({ opened: deaf });
  });
});

describe("cancelling", () => {
  test("frees the slot and stops the work: the graph's signal fires", async () => {
    const threadId = await api.aThread();
    const stream = await openStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: { ...LONG, stream_mode: "custom" },
    });
    await stream.until(({ event }) => event === "custom");
    const [run] = await api.runs(threadId);
    await api.cancel(threadId, run?.run_id ?? "");
    const events = await stream.rest();
    expect(dataOf(events, "custom").some((data) => "slept" in data)).toBe(false);
    expect(events.map(({ event }) => event)).not.toContain("error");
    expect(await freeSlots()).toBe(10);
  });

  test("has no effect on an ended run, however often it is requested", async () => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, { assistant_id: "counter", input: {} });
    await api.join(threadId, run.run_id);
    const before = [await api.run(threadId, run.run_id), await api.thread(threadId)];
    for (const query of ["wait=0", "wait=1", "wait=0&action=rollback", "wait=1&action=rollback", ""]) {
      const { status } = await api.cancel(threadId, run.run_id, query);
      expect(status).toBe(query.includes("wait=1") ? 204 : 202);
    }
    expect([await api.run(threadId, run.run_id), await api.thread(threadId)]).toEqual(before);
  });

  test("may be requested by many callers at once", async () => {
    const { thread_id: threadId, run_id: runId } = await aRunInProgress();
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        (index % 2 === 0 ? api : other).cancel(threadId, runId, "wait=1"),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(204));
    expect(await api.run(threadId, runId)).toMatchObject({ status: "interrupted" });
    expect((await api.thread(threadId)).status).not.toBe("busy");
  });

  test("withdraws a waiting run, and leaves the running one alone", async () => {
    const first = await aRunInProgress();
    const kept = await api.aRun(first.thread_id, { assistant_id: "counter", input: {} });
    const withdrawn = await other.aRun(first.thread_id, { assistant_id: "counter", input: {} });
    const rolledBack = await api.aRun(first.thread_id, { assistant_id: "counter", input: {} });
    const joined = other.join(first.thread_id, withdrawn.run_id);
    expect((await api.cancel(first.thread_id, withdrawn.run_id)).status).toBe(204);
    expect((await other.cancel(first.thread_id, rolledBack.run_id, "wait=1&action=rollback")).status).toBe(
      204,
    );
    await joined;
    expect(await api.run(first.thread_id, withdrawn.run_id)).toMatchObject({ status: "interrupted" });
    expect((await api.get(`/threads/${first.thread_id}/runs/${rolledBack.run_id}`)).status).toBe(404);
    expect(await api.run(first.thread_id, first.run_id)).toMatchObject({ status: "running" });
    await api.cancel(first.thread_id, first.run_id);
    await api.join(first.thread_id, kept.run_id);
    expect((await api.untilQuiet(first.thread_id)).status).toBe("idle");
  });

  test("of a waiting run leaves a thread's error status", async () => {
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, { assistant_id: "failing", input: {} });
    const waiting = await api.aRun(threadId, { assistant_id: "counter", input: {}, after_seconds: 3_600 });
    expect(await api.thread(threadId)).toMatchObject({ status: "busy" });
    await api.cancel(threadId, waiting.run_id);
    expect(await api.thread(threadId)).toMatchObject({ status: "error" });
  });

  test.each([
    ["withdrawn", "wait=1"],
    ["rolled back", "wait=1&action=rollback"],
  ])("of a waiting run that is %s leaves a thread interrupted before a node", async (_, way) => {
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, { assistant_id: "counter", input: {}, interrupt_before: "*" });
    const stopped = await api.thread(threadId);
    expect(stopped).toMatchObject({ status: "interrupted", interrupts: {} });
    const waiting = await api.aRun(threadId, { assistant_id: "counter", after_seconds: 3_600 });
    await api.cancel(threadId, waiting.run_id, way);
    expect(await api.thread(threadId)).toMatchObject({ status: "interrupted" });
    const found = await api.post<ThreadRecord[]>("/threads/search", {
      status: "interrupted",
      ids: [threadId],
    });
    expect(found.body).toHaveLength(1);
  });

  test.each(["wait=perhaps", "action=pause", "reason=because", "reason=taken&action=rollback"])(
    "refuses ?%s with a message that names it",
    async (query) => {
      const answer = await api.cancel(await api.aThread(), MISSING, query);
      expect(answer.status).toBe(422);
      expect(answer.body?.detail).toContain(query.split("=")[0]);
    },
  );
});

describe("cancelling several", () => {
  test("works by ids", async () => {
    const runs = [await aRunInProgress(), await aRunInProgress(), await aRunInProgress()];
    const answer = await api.post("/runs/cancel", {
      thread_id: runs[0]?.thread_id,
      run_ids: [runs[0]?.run_id],
    });
    expect([answer.status, answer.text]).toEqual([204, ""]);
    await api.untilRunIs(runs[0]?.thread_id ?? "", runs[0]?.run_id ?? "", "interrupted");
    const rest = runs.slice(1);
    await other.post("/runs/cancel?action=rollback", { run_ids: rest.map((run) => run.run_id) });
    for (const run of rest) {
      await eventually(
        "the run is gone",
        async () => (await api.get(`/threads/${run.thread_id}/runs/${run.run_id}`)).status === 404,
      );
    }
  });

  test("works by status, on one thread or on all", async () => {
    const first = await aRunInProgress();
    const waiting = await api.aRun(first.thread_id, LONG);
    const elsewhere = await aRunInProgress();
    await api.post("/runs/cancel", { status: "pending", thread_id: first.thread_id });
    expect(await api.run(waiting.thread_id, waiting.run_id)).toMatchObject({ status: "interrupted" });
    expect(await api.run(first.thread_id, first.run_id)).toMatchObject({ status: "running" });
    await api.post("/runs/cancel", { status: "all" });
    for (const run of [first, elsewhere]) await api.untilRunIs(run.thread_id, run.run_id, "interrupted");
  });

  test.each([
    [{}, 422],
    [{ run_ids: [MISSING] }, 404],
    [{ run_ids: ["no-uuid"] }, 422],
    [{ status: "success" }, 422],
  ])("refuses %j with %i", async (body, status) => {
    const answer = await api.post<Refusal>("/runs/cancel", body);
    expect(answer.status).toBe(status);
    expect(answer.body.detail).toEqual(expect.any(String));
  });
});

describe("a thread whose waiting run is withdrawn", () => {
  /** A run that is due earlier is executed before this one, so no run waits behind it. */
  const aRunForLater = (threadId: string): Promise<RunRecord> =>
    api.aRun(threadId, { assistant_id: "two-step", input: saying("later"), after_seconds: 3_600 });
  const ASK = { assistant_id: "approval", input: saying("a refund") };

  test.each(["interrupt", "rollback"])("keeps the status from the run before it (%s)", async (action) => {
    const threadId = await api.aThread();
    const later = await aRunForLater(threadId);
    await api.aFinishedRun(threadId, ASK);
    const { status, interrupts } = await api.thread(threadId);
    expect(status).toBe("busy");
    expect(Object.keys(interrupts)).toHaveLength(1);
    await api.cancel(threadId, later.run_id, `wait=1&action=${action}`);
    expect(await api.thread(threadId)).toMatchObject({ status: "interrupted", interrupts });
  });

  test("no longer waits for a person who has answered", async () => {
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, ASK);
    const later = await aRunForLater(threadId);
    await api.aFinishedRun(threadId, { assistant_id: "approval", command: { resume: "approve" } });
    await api.cancel(threadId, later.run_id);
    expect(await api.thread(threadId)).toMatchObject({ status: "idle", interrupts: {} });
  });
});

describe("a client that disconnects", () => {
  /** Sends the request and disconnects once the run is there, like a closed browser. */
  const leave = async (path: string, method: string, body?: object): Promise<void> => {
    const abort = new AbortController();
    const answer = fetch(`${server.url}${path}`, {
      method,
      headers: { "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: abort.signal,
    });
    const threadId = path.split("/")[2] ?? "";
    await eventually(
      "the run is in progress",
      async () => (await api.runs(threadId))[0]?.status === "running",
    );
    abort.abort();
    await answer.catch(() => undefined);
  };

  test.each(["stream", "wait"])("ends its run on %s if on_disconnect is cancel", async (way) => {
    const threadId = await api.aThread();
    await leave(`/threads/${threadId}/runs/${way}`, "POST", { ...LONG, on_disconnect: "cancel" });
    const [run] = await api.runs(threadId);
    await api.untilRunIs(threadId, run?.run_id ?? "", "interrupted");
  });

  test.each(["stream", "wait"])("does not affect its run on %s otherwise", async (way) => {
    const threadId = await api.aThread();
    await leave(`/threads/${threadId}/runs/${way}`, "POST", {
      assistant_id: "sleep",
      input: { ...saying("begin"), milliseconds: 500 },
      on_disconnect: "continue",
    });
    const [run] = await api.runs(threadId);
    await api.untilRunIs(threadId, run?.run_id ?? "", "success");
  });

  test.each(["join", "stream"])("ends the run on %s only if cancel_on_disconnect was set", async (way) => {
    const run = await aRunInProgress();
    const path = `/threads/${run.thread_id}/runs/${run.run_id}/${way}`;
    await leave(`${path}?cancel_on_disconnect=0`, "GET");
    await leave(path, "GET");
    const start = performance.now();
    expect(await api.run(run.thread_id, run.run_id)).toMatchObject({ status: "running" });
    await leave(`${path}?cancel_on_disconnect=${way === "join" ? "1" : "true"}`, "GET");
    await api.untilRunIs(run.thread_id, run.run_id, "interrupted");
    expect(performance.now() - start).toBeLessThan(PROMPTLY_MS);
  });

  test.each(["stream", "wait"])("before its run was stored ends it nevertheless (%s)", async (way) => {
    const threadId = await api.aThread();
    const holder = new pg.Client({ connectionString: server.connectionString });
    await holder.connect();
    try {
      await holder.query("begin");
      await holder.query("select 1 from threadloom.threads where thread_id = $1 for update", [threadId]);
      const abort = new AbortController();
      const answer = fetch(`${server.url}/threads/${threadId}/runs/${way}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ...LONG, on_disconnect: "cancel" }),
        signal: abort.signal,
      }).catch(() => undefined);
      await eventually("the request waits for the thread", () =>
        isSomeWaiting((text) => query(server, text)),
      );
      abort.abort();
      await answer;
      await holder.query("commit");
    } finally {
      await holder.end();
    }
    const run = await eventually("the run is stored", async () => (await api.runs(threadId))[0]);
    await api.untilRunIs(threadId, run.run_id, "interrupted");
  });
});
