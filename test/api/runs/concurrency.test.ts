import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { RunRecord } from "../../../src/api/runs/schemas.ts";
import { apiOf, saying, textsOf, type Api, type Refusal } from "../../helpers/api.ts";
import { isAtGate, openGate } from "../../fixtures/gates.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { openStream, readStream } from "../../helpers/server-sent-events.ts";

/** Longer than any test: the run ends by a cancel. */
const LONG = { assistant_id: "sleep", input: { milliseconds: 600_000 } };
const COUNT = { assistant_id: "counter", input: { count: 10 } };
const RACERS = 20;

let server: TestServer;
let replica: TestServer;
let api: Api;
let other: Api;
beforeAll(async () => {
  server = await startTestServer({ jobsPerWorker: 40 });
  replica = await startTestServer({ connectionString: server.connectionString });
  api = apiOf(server);
  other = apiOf(replica);
});
afterEach(async () => {
  await api.post("/runs/cancel", { status: "all" });
});
afterAll(async () => {
  await replica.close();
  await server.close();
});

const aRunInProgress = async (threadId: string, body: object = LONG): Promise<RunRecord> => {
  const run = await api.aRun(threadId, body);
  return await api.untilRunIs(threadId, run.run_id, "running");
};

describe("reject", () => {
  test("answers 409 and stores nothing while a run is running, which completes", async () => {
    const threadId = await api.aThread();
    const first = await aRunInProgress(threadId, {
      assistant_id: "gate",
      input: { label: "the original" },
    });
    await eventually("it is at its gate", () => isAtGate("the original"));
    const record = async () => ({ ...(await api.thread(threadId)), values: undefined });
    const before = await record();
    for (const path of ["", "/stream", "/wait"]) {
      const refused = await api.post<Refusal>(`/threads/${threadId}/runs${path}`, {
        ...COUNT,
        multitask_strategy: "reject",
        metadata: { refused: true },
      });
      expect(refused.status).toBe(409);
      expect(refused.body.detail).toContain(threadId);
    }
    expect(await record()).toEqual(before);
    expect((await api.runs(threadId)).map((run) => run.run_id)).toEqual([first.run_id]);

    openGate("the original");
    expect(await api.join(threadId, first.run_id)).toMatchObject({ done: ["the original"] });
    expect(await api.run(threadId, first.run_id)).toMatchObject({ status: "success" });
  });

  test("counts a waiting run as unfinished", async () => {
    const threadId = await api.aThread();
    await api.aRun(threadId, { ...COUNT, after_seconds: 3_600 });
    const refused = await api.post(`/threads/${threadId}/runs`, { ...COUNT, multitask_strategy: "reject" });
    expect(refused.status).toBe(409);
  });

  test("accepts the run when the thread is free again, and does not touch other threads", async () => {
    const [threadId, free] = [await api.aThread(), await api.aThread()];
    const first = await aRunInProgress(threadId);
    expect(await api.aFinishedRun(free, { ...COUNT, multitask_strategy: "reject" })).toMatchObject({
      count: 11,
    });
    await api.cancel(threadId, first.run_id);
    const next = await api.post<RunRecord>(`/threads/${threadId}/runs`, {
      ...COUNT,
      multitask_strategy: "reject",
    });
    expect(next.status).toBe(200);
    await api.join(threadId, next.body.run_id);
  });

  test.each([
    ["one server", () => [api]],
    ["two servers on one database", () => [api, other]],
  ])("accepts one of twenty concurrent runs on an idle thread of %s", async (_, servers) => {
    const threadId = await api.aThread();
    const answers = await Promise.all(
      Array.from({ length: RACERS }, (_, index) =>
        (servers()[index % servers().length] as Api).post<RunRecord & Refusal>(`/threads/${threadId}/runs`, {
          ...LONG,
          multitask_strategy: "reject",
        }),
      ),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(RACERS - 1);
    const stored = await api.runs(threadId);
    expect(stored).toHaveLength(1);
    const winner = answers.find(({ status }) => status === 200)?.body.run_id ?? "";
    expect(stored[0]?.run_id).toBe(winner);
    expect(await api.untilRunIs(threadId, winner, "running")).toMatchObject({ run_id: winner });
  });

  test("refuses all of twenty concurrent runs beside a running one, over two servers", async () => {
    const threadId = await api.aThread();
    const first = await aRunInProgress(threadId);
    const answers = await Promise.all(
      Array.from({ length: RACERS }, (_, index) =>
        (index % 2 === 0 ? api : other).post(`/threads/${threadId}/runs/stream`, {
          ...COUNT,
          multitask_strategy: "reject",
        }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(RACERS).fill(409));
    expect((await api.runs(threadId)).map(({ run_id, status }) => [run_id, status])).toEqual([
      [first.run_id, "running"],
    ]);
  });

  test("lets one of twenty concurrent runs create a missing thread", async () => {
    const threadId = crypto.randomUUID();
    const answers = await Promise.all(
      Array.from({ length: RACERS }, (_, index) =>
        (index % 2 === 0 ? api : other).post(`/threads/${threadId}/runs`, {
          ...LONG,
          multitask_strategy: "reject",
          if_not_exists: "create",
        }),
      ),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(RACERS - 1);
    expect(await api.runs(threadId)).toHaveLength(1);
  });
});

describe("enqueue", () => {
  test("is the default, and keeps the order of creation", async () => {
    const threadId = await api.aThread();
    const first = await aRunInProgress(threadId);
    const later: RunRecord[] = [];
    for (let index = 1; index <= 5; index += 1) {
      const server = index % 2 === 0 ? other : api;
      later.push(await server.aRun(threadId, { assistant_id: "two-step", input: saying(`turn ${index}`) }));
    }
    expect(later.map(({ status, multitask_strategy }) => [status, multitask_strategy])).toEqual(
      later.map(() => ["pending", "enqueue"]),
    );
    await api.cancel(threadId, first.run_id);
    await api.untilQuiet(threadId);
    expect(textsOf((await api.state(threadId)).values.messages)).toEqual(
      [1, 2, 3, 4, 5].flatMap((index) => [`turn ${index}`, "first", "second"]),
    );
    for (const run of later) expect(await api.run(threadId, run.run_id)).toMatchObject({ status: "success" });
  });

  test("executes one run at a time, also over two servers", async () => {
    const threadId = await api.aThread();
    const runs = await Promise.all(
      Array.from({ length: RACERS }, (_, index) =>
        (index % 2 === 0 ? api : other).aRun(threadId, { assistant_id: "counter", input: {} }),
      ),
    );
    expect(new Set(runs.map((run) => run.run_id)).size).toBe(RACERS);
    await api.untilQuiet(threadId);
    // Two parallel runs would both have added to the same count.
    expect((await api.state(threadId)).values["count"]).toBe(RACERS);
    expect((await api.runs(threadId)).filter((run) => run.status === "success")).toHaveLength(RACERS);
  });

  test("keeps the thread busy until the last run has ended", async () => {
    const threadId = await api.aThread();
    const first = await aRunInProgress(threadId);
    const second = await api.aRun(threadId, LONG);
    await api.cancel(threadId, first.run_id);
    expect(await api.thread(threadId)).toMatchObject({ status: "busy" });
    await api.untilRunIs(threadId, second.run_id, "running");
    await api.cancel(threadId, second.run_id);
    expect((await api.thread(threadId)).status).not.toBe("busy");
  });

  test("streams a run that had to wait from its first event", async () => {
    const threadId = await api.aThread();
    const first = await aRunInProgress(threadId);
    const stream = await openStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: { ...COUNT, stream_mode: "updates" },
    });
    await api.cancel(threadId, first.run_id);
    expect((await stream.rest()).map(({ event, data }) => [event, data])).toEqual([
      ["metadata", { run_id: expect.any(String), attempt: 1 }],
      ["updates", { increment: { count: 1 } }],
    ]);
  });
});

describe("interrupt", () => {
  test("ends the running run as interrupted, keeps its checkpoints, and continues from them", async () => {
    const threadId = await api.aThread();
    const first = await aRunInProgress(threadId, {
      assistant_id: "sleep",
      input: { ...saying("first"), milliseconds: 600_000 },
    });
    const second = await api.aRun(threadId, {
      assistant_id: "sleep",
      input: { ...saying("second"), milliseconds: 0 },
      multitask_strategy: "interrupt",
    });
    expect(textsOf((await api.join(threadId, second.run_id)).messages)).toEqual([
      "first",
      "second",
      "Slept for 0 ms.",
    ]);
    expect(await api.run(threadId, first.run_id)).toMatchObject({ status: "interrupted" });
    expect((await api.history(threadId)).map(({ metadata }) => metadata["run_id"])).toContain(first.run_id);
  });

  test("ends the waiting runs, too, and runs next", async () => {
    const threadId = await api.aThread();
    const first = await aRunInProgress(threadId);
    const waiting = [await api.aRun(threadId, COUNT), await other.aRun(threadId, COUNT)];
    const last = await other.aRun(threadId, { ...COUNT, multitask_strategy: "interrupt" });
    await api.join(threadId, last.run_id);
    for (const run of [first, ...waiting]) {
      expect(await api.untilRunIs(threadId, run.run_id, "interrupted")).toBeDefined();
    }
    expect(await api.run(threadId, last.run_id)).toMatchObject({ status: "success" });
    expect((await api.untilQuiet(threadId)).status).toBe("idle");
  });

  test("ends a run of another server, and clients that joined the run get its answer", async () => {
    const threadId = await api.aThread();
    const first = await aRunInProgress(threadId, {
      ...LONG,
      input: { ...saying("kept"), milliseconds: 600_000 },
    });
    const joined = api.join(threadId, first.run_id);
    const stream = readStream(`${server.url}/threads/${threadId}/runs/${first.run_id}/stream`);
    const second = await other.aRun(threadId, { ...COUNT, multitask_strategy: "interrupt" });
    expect(textsOf((await joined).messages)).toEqual(["kept"]);
    await stream;
    await other.join(threadId, second.run_id);
    expect(await api.run(threadId, first.run_id)).toMatchObject({ status: "interrupted" });
  });
});

describe("rollback", () => {
  test("removes the running run and its checkpoints, and restores the thread", async () => {
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, { assistant_id: "counter", input: { count: 4 } });
    const before = await api.history(threadId);
    const first = await aRunInProgress(threadId, {
      assistant_id: "sleep",
      input: { ...saying("gone"), milliseconds: 600_000 },
    });
    const joined = api.get(`/threads/${threadId}/runs/${first.run_id}/join`);
    const second = await api.aRun(threadId, {
      assistant_id: "counter",
      input: {},
      multitask_strategy: "rollback",
    });
    expect(await api.join(threadId, second.run_id)).toMatchObject({ count: 6, messages: [] });
    expect((await api.get(`/threads/${threadId}/runs/${first.run_id}`)).status).toBe(404);
    expect((await joined).body).toMatchObject({ __error__: { error: "RunRolledBack" } });
    const after = await api.history(threadId);
    expect(after.map(({ metadata }) => metadata["run_id"])).not.toContain(first.run_id);
    expect(after.slice(-before.length)).toEqual(before);
    expect(after.at(-before.length - 1)?.parent_checkpoint?.checkpoint_id).toBe(
      (before[0]?.checkpoint as { checkpoint_id: string }).checkpoint_id,
    );
    expect(await api.thread(threadId)).toMatchObject({ status: "idle" });
  });

  test("removes the waiting runs, too, also on another server", async () => {
    const threadId = await api.aThread();
    const first = await aRunInProgress(threadId);
    const waiting = await api.aRun(threadId, COUNT);
    const last = await other.aRun(threadId, { ...COUNT, multitask_strategy: "rollback" });
    expect(await other.join(threadId, last.run_id)).toMatchObject({ count: 11 });
    for (const run of [first, waiting]) {
      expect((await api.get(`/threads/${threadId}/runs/${run.run_id}`)).status).toBe(404);
    }
    expect((await api.runs(threadId)).map((run) => run.run_id)).toEqual([last.run_id]);
    expect((await api.untilQuiet(threadId)).status).toBe("idle");
  });

  test("restores the interrupt of an interrupted thread", async () => {
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, { assistant_id: "approval", input: saying("a refund") });
    const before = await api.thread(threadId);
    expect(before.status).toBe("interrupted");
    const run = await aRunInProgress(threadId, LONG);
    await api.cancel(threadId, run.run_id, "wait=1&action=rollback");
    const after = await api.thread(threadId);
    expect(after).toMatchObject({
      status: "interrupted",
      interrupts: before.interrupts,
    });
    const result = await api.aFinishedRun(threadId, { assistant_id: "approval", command: { resume: true } });
    expect(result["status"]).toBe("sent");
  });
});
