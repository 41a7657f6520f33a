import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import type { RunOutcome } from "../../../src/engine/queue/attempts.ts";
import type { RunEnds } from "../../../src/engine/queue/ending.ts";
import { lockAttempt } from "../../../src/engine/queue/sql/lock-attempt.ts";
import { lockThread } from "../../../src/engine/queue/sql/lock-threads.ts";
import type { Queue } from "../../../src/engine/queue/queue.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { openQueue, type OpenQueue, type QueuedRun } from "./open-queue.ts";

let opened: OpenQueue;
let database: Database;
let queue: Queue;
let ends: RunEnds;
beforeAll(async () => {
  opened = await openQueue();
  ({ database, queue, ends } = opened);
});
afterAll(() => opened.close());
beforeEach(() => database.query("delete from threadloom.threads"));

const LEASE_SECONDS = 10;
const FAILED: RunOutcome = {
  status: "error",
  error: { error: "Error", message: "no" },
  threadStatus: "error",
  interrupts: '{"task": []}',
};

const changes: OpenQueue["changes"] = (work) => opened.changes(work);
const isFree: OpenQueue["isFree"] = (table, id) => opened.isFree(table, id);

describe("an attempt", () => {
  const everything = async ({ threadId, runId }: { threadId: string; runId: string }, attempt: number) => {
    const selector = { threadId, runId, attempt };
    expect(await ends.finish(selector, FAILED)).toBeUndefined();
    expect(await queue.renew([selector], LEASE_SECONDS)).toEqual([]);
    expect(await queue.handBack(selector)).toBeUndefined();
    await queue.giveUpLease(selector);
    expect(await database.transaction((transaction) => lockAttempt(transaction, selector))).toBeUndefined();
  };

  test.each<[string, QueuedRun, number]>([
    ["that another one has followed", { attempt: 2 }, 1],
    ["that another one has followed, and that is to be cancelled", { attempt: 2, cancel: "interrupt" }, 1],
    ["whose run waits again", { status: "pending" }, 1],
    ["whose run has ended", { status: "success" }, 1],
    ["whose run has ended, and was to be cancelled", { status: "success", cancel: "rollback" }, 1],
  ])("%s ends nothing, keeps nothing, and gives nothing back", async (_, run, attempt) => {
    const made = await opened.aRun({ leaseFor: 5, ...run });
    expect(await changes(() => everything(made, attempt))).toEqual(new Map());
  });

  test("that names another thread than its run's ends nothing, keeps nothing, and gives nothing back", async () => {
    const { runId } = await opened.aRun({ leaseFor: 5 });
    const { threadId } = await opened.aRun({ leaseFor: 5 });
    expect(await changes(() => everything({ threadId, runId }, 1))).toEqual(new Map());
  });

  test("ends its own run, and leaves the thread to the waiting ones", async () => {
    const run = await opened.aRun({ attempt: 2, leaseFor: 5 });
    await opened.aRun({ threadId: run.threadId, status: "pending" });
    await opened.aRun({ attempt: 2, leaseFor: 5 });
    expect(await changes(async () => expect(await ends.finish(run, FAILED)).toEqual({ waiting: 1 }))).toEqual(
      new Map<string, unknown>([
        [run.runId, { status: "error", error: FAILED.error, lease_until: null }],
        [
          run.threadId,
          {
            unfinished_runs: 1,
            resting_status: "error",
            error: FAILED.error,
            interrupts: { task: [] },
            state_updated_at: expect.any(String),
          },
        ],
      ]),
    );
  });

  test("frees the thread if none waits, and starts the thread's time to live", async () => {
    const run = await opened.aRun({});
    await database.query("update threadloom.threads set ttl_minutes = 5 where thread_id = $1", [
      run.threadId,
    ]);
    const changed = await changes(() => ends.finish(run, FAILED));
    expect(changed.get(run.threadId)).toMatchObject({
      status: "error",
      unfinished_runs: 0,
      expires_at: expect.any(String),
    });
  });

  test("does not end its run on another thread", async () => {
    const run = await opened.aRun({});
    const other = await opened.aRun({});
    expect(await changes(() => ends.finish({ ...run, threadId: other.threadId }, FAILED))).toEqual(new Map());
  });

  test("locks the thread before the run, in the common order", async () => {
    const run = await opened.aRun({});
    await opened.whileLocked(
      "threads",
      run.threadId,
      () => ends.finish(run, FAILED),
      async () => expect(await isFree("runs", run.runId)).toBe(true),
    );
    expect((await opened.rows()).get(run.runId)).toMatchObject({ status: "error" });
  });

  test("gives back its own run, and no other", async () => {
    const workerId = newId();
    const run = await opened.aRun({ attempt: 2, leaseFor: 5, workerId });
    await opened.aRun({ attempt: 2, leaseFor: 5, workerId });
    expect(await changes(() => queue.handBack(run))).toEqual(
      new Map<string, unknown>([
        [run.runId, { status: "pending", worker_id: null, lease_until: null }],
        [run.threadId, { turns: 1 }],
      ]),
    );
  });

  test("keeps a run with a pending cancel, and learns of it", async () => {
    await opened.aRun({ attempt: 2, cancel: "interrupt" });
    await opened.aRun({ attempt: 2 });
    const run = await opened.aRun({ attempt: 2, cancel: "rollback" });
    expect(await changes(async () => expect(await queue.handBack(run)).toBe("rollback"))).toEqual(new Map());
  });

  test("gives up its own lease, and no other", async () => {
    const run = await opened.aRun({ attempt: 2, leaseFor: 5 });
    await opened.aRun({ attempt: 2, leaseFor: 5 });
    expect(await changes(() => queue.giveUpLease(run))).toEqual(
      new Map([[run.runId, { lease_until: expect.any(String) }]]),
    );
  });

  test("renews its own lease, and learns that its run is to be cancelled", async () => {
    const run = await opened.aRun({ attempt: 2, leaseFor: 5, cancel: "interrupt" });
    await opened.aRun({ attempt: 2, leaseFor: 5 });
    const changed = await changes(async () =>
      expect(await queue.renew([run], LEASE_SECONDS)).toEqual([
        { run_id: run.runId, attempt: 2, cancel_action: "interrupt", read_elsewhere: false },
      ]),
    );
    expect([...changed.keys()]).toEqual([run.runId]);
    const [lease] = await database.query<{ seconds: number }>(
      "select extract(epoch from lease_until - now())::float8 as seconds from threadloom.runs where run_id = $1",
      [run.runId],
    );
    expect(lease?.seconds).toBeGreaterThan(5);
  });

  test("renews in the order of the runs' ids, whatever the order of the request", async () => {
    const [first, second] = [await opened.aRun({}), await opened.aRun({})];
    await opened.whileLocked(
      "runs",
      first.runId,
      () => queue.renew([second, first], LEASE_SECONDS),
      async () => expect(await isFree("runs", second.runId)).toBe(true),
    );
  });

  test("locks its run while it reads the run", async () => {
    const run = await opened.aRun({ attempt: 2 });
    const other = await opened.aRun({ attempt: 2 });
    await database.transaction(async (transaction) => {
      expect(await lockAttempt(transaction, run)).toEqual({ readerId: null });
      expect(await isFree("runs", run.runId)).toBe(false);
      expect(await isFree("runs", other.runId)).toBe(true);
    });
  });

  test("knows how its own run ended", async () => {
    const run = await opened.aRun({ attempt: 2, status: "success" });
    await opened.aRun({ attempt: 1, status: "error" });
    expect(await queue.endedAs(run, "success")).toBe(true);
    expect(await queue.endedAs(run, "error")).toBe(false);
    expect(await queue.endedAs({ ...run, attempt: 1 }, "success")).toBe(false);
    expect(await queue.endedAs({ ...run, runId: newId() }, "success")).toBe("gone");
  });
});

test("the check whether the database accepts writes locks no run", async () => {
  await opened.aRun({});
  const versions = () => database.query("select xmin::text from threadloom.runs");
  const before = await versions();
  await queue.assertWritable();
  expect(await versions()).toEqual(before);
});

describe("a worker that owns a run it does not know", () => {
  test("finds it, oldest first, and skips known, new and foreign ones", async () => {
    const workerId = newId();
    const held = { workerId, updatedIn: -2 };
    const younger = await opened.aRun({ ...held, createdIn: -5 });
    const older = await opened.aRun({ ...held, createdIn: -10 });
    const known = await opened.aRun(held);
    await opened.aRun({ ...held, updatedIn: 0 });
    await opened.aRun({ ...held, workerId: newId() });
    await opened.aRun({ ...held, status: "success" });
    const found = await queue.listUnknown(workerId, [known.runId]);
    expect(found.map((run) => run.run_id)).toEqual([older.runId, younger.runId]);
  });
});

describe("a run whose worker", () => {
  /** Holds the session lock of a living process (platform/database/signals.ts). */
  const withSession = async (workerId: string, work: () => Promise<void>): Promise<void> => {
    await database.transaction(async (transaction) => {
      await transaction.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [workerId]);
      await work();
    });
  };
  const recovered = async (): Promise<{ requeued: string[]; abandoned: string[] }> => ({
    abandoned: (await queue.listAbandoned(LEASE_SECONDS)).map((run) => run.run_id),
    requeued: (await queue.requeueLost(LEASE_SECONDS)).map((run) => run.run_id),
  });

  test.each<[string, QueuedRun, "goes back" | "is ended" | "stays"]>([
    ["has let its lease go by", { leaseFor: -1 }, "goes back"],
    ["is gone, with half of its lease", { leaseFor: 4 }, "goes back"],
    ["is gone, but had just renewed its lease", { leaseFor: 6 }, "stays"],
    ["is gone for the second time", { leaseFor: -1, lost: 1 }, "goes back"],
    ["is gone for the last time", { leaseFor: -1, lost: 2 }, "is ended"],
    ["is gone, and that is to be cancelled", { leaseFor: -1, cancel: "interrupt" }, "is ended"],
    ["is gone, and that waits already", { leaseFor: -1, status: "pending" }, "stays"],
    ["is gone, and that has ended", { leaseFor: -1, lost: 2, status: "success" }, "stays"],
    [
      "had just renewed its lease, and that is to be cancelled",
      { leaseFor: 6, cancel: "interrupt" },
      "stays",
    ],
  ])("%s", async (_, run, what) => {
    const made = await opened.aRun({ workerId: newId(), attempt: 4, ...run });
    await opened.aRun({ workerId: newId(), leaseFor: 8 });
    let found: Awaited<ReturnType<typeof recovered>> | undefined;
    const changed = await changes(async () => (found = await recovered()));
    expect(found).toEqual({
      requeued: what === "goes back" ? [made.runId] : [],
      abandoned: what === "is ended" ? [made.runId] : [],
    });
    const requeued = {
      status: "pending",
      worker_id: null,
      lease_until: null,
      lost_attempts: (run.lost ?? 0) + 1,
    };
    expect(changed).toEqual(
      new Map<string, unknown>(
        what === "goes back"
          ? [
              [made.runId, requeued],
              [made.threadId, { turns: 1 }],
            ]
          : [],
      ),
    );
  });

  test("lives and has half of its lease keeps it until the lease expires", async () => {
    const workerId = newId();
    await opened.aRun({ workerId, leaseFor: 4 });
    const late = await opened.aRun({ workerId, leaseFor: -1 });
    await withSession(workerId, async () => {
      expect((await recovered()).requeued).toEqual([late.runId]);
    });
  });

  test("is gone goes back although another worker lives", async () => {
    const run = await opened.aRun({ workerId: newId(), leaseFor: 4 });
    await withSession(newId(), async () => {
      expect((await recovered()).requeued).toEqual([run.runId]);
    });
  });

  test("is gone goes back although another session holds a lock similar to the worker's", async () => {
    const workerId = newId();
    const run = await opened.aRun({ workerId, leaseFor: 4 });
    await database.transaction(async (transaction) => {
      await transaction.query(
        `select pg_advisory_xact_lock((key >> 32)::int, ((key << 32) >> 32)::int) from hashtextextended($1, 0) as key`,
        [workerId],
      );
      expect((await recovered()).requeued).toEqual([run.runId]);
    });
  });

  test("is gone is skipped while another process handles it", async () => {
    const [held, free] = [await opened.aRun({ leaseFor: -1 }), await opened.aRun({ leaseFor: -1 })];
    await database.transaction(async (transaction) => {
      await lockAttempt(transaction, held);
      expect(await queue.requeueLost(LEASE_SECONDS)).toEqual([
        // The fields of the log line.
        { run_id: free.runId, thread_id: free.threadId, graph_id: "test", attempt: 1, lost_attempts: 1 },
      ]);
    });
  });

  test("is gone is ended by a worker that hosts its graph, or by any process if none does", async () => {
    const lost = { leaseFor: -1, lost: 2 };
    const own = await opened.aRun(lost);
    const nobodys = await opened.aRun({ ...lost, graph: "elsewhere" });
    expect((await recovered()).abandoned).toEqual([own.runId, nobodys.runId]);
    await database.query(
      "insert into threadloom.workers (worker_id, graph_ids) values ($1, '{elsewhere,test}')",
      [newId()],
    );
    expect((await recovered()).abandoned).toEqual([own.runId]);
    await database.query("delete from threadloom.workers");
  });
});

describe("a run that was rolled back", () => {
  test.each([
    [0, "idle"],
    [1, "busy"],
  ])("leaves its thread as it was, with %i other waiting runs", async (waiting, status) => {
    const run = await opened.aRun({});
    for (let count = 0; count < waiting; count += 1)
      await opened.aRun({ threadId: run.threadId, status: "pending" });
    await opened.aRun({});
    await database.query("update threadloom.threads set ttl_minutes = 5 where thread_id = $1", [
      run.threadId,
    ]);
    const changed = await changes(() => ends.rollBack(run));
    expect([...changed.keys()].sort()).toEqual([run.threadId, run.runId].sort());
    expect(changed.get(run.runId)).toBeNull();
    expect(changed.get(run.threadId)).toMatchObject({
      unfinished_runs: waiting,
      expires_at: expect.any(String),
    });
    expect((await opened.rows()).get(run.threadId)).toMatchObject({ status });
  });
});

describe("an ended threadless run", () => {
  test("is found when it is old enough, the oldest first, in batches", async () => {
    const ended = { withThread: true, status: "success" };
    const young = await opened.aRun({ ...ended, updatedIn: -20 });
    const old = await opened.aRun({ ...ended, updatedIn: -30 });
    await opened.aRun({ ...ended, updatedIn: -5 });
    await opened.aRun({ ...ended, updatedIn: -30, withThread: false });
    await opened.aRun({ ...ended, updatedIn: -30, status: "pending" });
    await opened.aRun({ ...ended, updatedIn: -30, status: "running" });
    expect(await queue.listEndedThreadless(10)).toEqual([old.threadId, young.threadId]);
  });
});

describe("a deleted thread", () => {
  test("ends the runs that it has at its deletion, not those that it had at the request", async () => {
    const threadId = await opened.aThread();
    const ends = await opened.aRun({ threadId, status: "running" });
    const appears = await opened.aRun({ threadId, status: "success" });
    const final = await opened.whileLocked(
      "threads",
      threadId,
      () =>
        database.transaction(async (transaction) => {
          await lockThread(transaction, threadId, { forDeletion: true });
          return await opened.ends.deleteThreads(transaction, [threadId]);
        }),
      async (holder) => {
        await holder.query("update threadloom.runs set status = 'success' where run_id = $1", [ends.runId]);
        await holder.query("update threadloom.runs set status = 'pending' where run_id = $1", [
          appears.runId,
        ]);
      },
    );
    expect(final).toMatchObject([{ run: { run_id: appears.runId }, status: "deleted", error: null }]);
    expect((await opened.rows()).has(appears.runId)).toBe(false);
  });
});
