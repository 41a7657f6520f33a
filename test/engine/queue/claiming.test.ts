import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import { createQueue, type Queue } from "../../../src/engine/queue/queue.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { openQueue, type OpenQueue, type QueuedRun } from "./open-queue.ts";

let opened: OpenQueue;
let database: Database;
let queue: Queue;
beforeAll(async () => {
  opened = await openQueue();
  ({ database, queue } = opened);
});
afterAll(() => opened.close());
beforeEach(() => database.query("delete from threadloom.threads"));

const WORKER = newId();
const LEASE_SECONDS = 10;
const waiting = (run: QueuedRun = {}) => opened.aRun({ status: "pending", attempt: 0, ...run });
const claimed = async (limit = 10, from = queue): Promise<string[]> =>
  (await from.claim(WORKER, LEASE_SECONDS, limit)).map((run) => run.run_id);

describe("a claim", () => {
  test("takes waiting runs in the order in which they could start, up to its limit", async () => {
    const third = await waiting({ availableIn: -5, createdIn: -5 });
    const second = await waiting({ availableIn: -5, createdIn: -20 });
    const first = await waiting({ availableIn: -10, createdIn: -10 });
    expect(new Set(await claimed(2))).toEqual(new Set([first.runId, second.runId]));
    expect(await claimed(2)).toEqual([third.runId]);
    expect(await claimed(2)).toEqual([]);
  });

  test("takes the oldest runs of a long queue, whatever their graphs", async () => {
    const oldest: string[] = [];
    for (let age = 30; age > 0; age -= 1) {
      for (const graph of ["test", "second"]) {
        const { runId } = await waiting({ graph, availableIn: -age, createdIn: -age });
        if (age === 30) oldest.push(runId);
      }
    }
    expect(new Set(await claimed(2))).toEqual(new Set(oldest));
  });

  test("makes a run an attempt of the worker, with a lease, and changes nothing else", async () => {
    const run = await waiting({ attempt: 1, lost: 1 });
    await waiting({ availableIn: 60 });
    const before = await opened.rows();
    const [row] = await queue.claim(WORKER, LEASE_SECONDS, 10);
    expect(row).toMatchObject({ run_id: run.runId, status: "running", attempt: 2, worker_id: WORKER });
    expect(row?.lease_until?.getTime()).toBeGreaterThan(Date.now() + (LEASE_SECONDS * 1_000) / 2);
    expect(row?.started_at).toBeInstanceOf(Date);
    const after = await opened.rows();
    for (const [id, was] of before) if (id !== run.runId) expect(after.get(id)).toEqual(was);
    expect(after.get(run.runId)).toMatchObject({ status: "running", attempt: 2, lost_attempts: 1 });
  });

  test("keeps the time of the first start", async () => {
    const run = await waiting({ attempt: 1 });
    await database.query("update threadloom.runs set started_at = '2026-01-01' where run_id = $1", [
      run.runId,
    ]);
    const [row] = await queue.claim(WORKER, LEASE_SECONDS, 10);
    expect(row?.started_at?.toISOString()).toContain("2026-01-01");
  });

  test.each<[string, QueuedRun]>([
    ["runs", { status: "running" }],
    ["has ended", { status: "success" }],
    ["may not start yet", { availableIn: 60 }],
    ["waits behind another one", { behind: true }],
    ["has a graph that this process does not host", { graph: "elsewhere" }],
  ])("leaves alone what %s", async (_, run) => {
    await waiting(run);
    expect(await claimed()).toEqual([]);
  });

  test("takes the oldest startable run of a thread, whatever `behind` says, and none while one runs", async () => {
    const threadId = await opened.aThread();
    await waiting({ threadId, createdIn: -5 });
    const oldest = await waiting({ threadId, createdIn: -10 });
    await waiting({ threadId, createdIn: -20, availableIn: 60 });
    await waiting({ threadId, createdIn: -30, status: "success" });
    expect(await claimed()).toEqual([oldest.runId]);
    expect(await claimed()).toEqual([]);
  });

  test("takes no run before an older one of the thread that another process has to take", async () => {
    const threadId = await opened.aThread();
    await waiting({ threadId, createdIn: -10, graph: "elsewhere" });
    await waiting({ threadId, createdIn: -5 });
    expect(await claimed()).toEqual([]);
  });

  test("skips runs that another worker is claiming, also if it asks for the same ones", async () => {
    const runs = [
      await waiting({ createdIn: -4 }),
      await waiting({ createdIn: -3 }),
      await waiting({ createdIn: -2 }),
    ];
    await database.transaction(async (transaction) => {
      expect(await claimed(1, opened.queueOn(transaction))).toEqual([runs[0]?.runId]);
      expect(await claimed(1)).toEqual([runs[1]?.runId]);
      expect(await claimed(1)).toEqual([runs[2]?.runId]);
    });
    for (const { runId } of runs) expect((await opened.rows()).get(runId)).toMatchObject({ attempt: 1 });
  });

  test("gives each run to one worker, however many claim at the same time", async () => {
    const runs: string[] = [];
    for (let count = 0; count < 60; count += 1) runs.push((await waiting()).runId);
    const taken: string[] = [];
    const worker = async (): Promise<void> => {
      for (;;) {
        const more = await claimed(2);
        if (more.length === 0) return;
        taken.push(...more);
      }
    };
    await Promise.all([worker(), worker(), worker(), worker(), worker(), worker()]);
    taken.push(...(await claimed()));
    expect(taken.sort()).toEqual(runs.sort());
  });

  test("reports for a first attempt whether its thread has no state yet", async () => {
    const withState = await waiting({ createdIn: -3 });
    const later = await waiting({ createdIn: -2, attempt: 1 });
    const empty = await waiting({ createdIn: -1 });
    await database.query(
      `insert into threadloom.checkpoints (thread_id, checkpoint_ns, checkpoint_id, metadata, names, record, seq)
       values ($1, '', $1, '{}', $1, '', 1)`,
      [withState.threadId],
    );
    const rows = await queue.claim(WORKER, LEASE_SECONDS, 10);
    expect(new Map(rows.map((row) => [row.run_id, row.starts_empty]))).toEqual(
      new Map([
        [withState.runId, false],
        [later.runId, false],
        [empty.runId, true],
      ]),
    );
  });
});

test("a claim without room for processes of their own leaves runs that need one, and takes the others", async () => {
  const alone = await waiting({ attempt: 2, lost: 2, createdIn: -10 });
  const once = await waiting({ attempt: 1, lost: 1 });
  const without = { withAlone: false };
  const taken = await queue.claim(WORKER, LEASE_SECONDS, 10, without);
  expect(taken.map((run) => run.run_id)).toEqual([once.runId]);
  expect(await claimed()).toEqual([alone.runId]);
});

test.each([
  [1, [0, 1]],
  [2, [0, 1]],
  [3, [0, 2]],
  [10, [0, 2]],
])("of %i attempts, a run has a process of its own from a loss on", (maxAttempts, [together, alone]) => {
  const { goesAlone } = createQueue(database, { maxAttempts, graphIds: ["test"] });
  expect([together, alone].map((lost_attempts = 0) => goesAlone({ lost_attempts }))).toEqual([false, true]);
  expect(goesAlone({ lost_attempts: (alone ?? 0) - 1 })).toBe(false);
});

describe("a run that has begun, and waits for another process,", () => {
  const begun = (run: QueuedRun = {}) => waiting({ attempt: 1, ...run });
  const limited = () =>
    createQueue(database, {
      maxAttempts: 3,
      graphIds: ["test", "second"],
      runningLimits: { perCaller: 0, keyFactor: 1, byGraph: new Map([["test", 5]]) },
    });

  test.each([
    ["a claim", () => queue],
    ["a claim that counts running runs", limited],
  ])("is taken before older runs of its thread by %s", async (_, from) => {
    const older = await waiting({ createdIn: -20 });
    await waiting({ threadId: older.threadId, createdIn: -10, availableIn: -5 });
    const run = await begun({ threadId: older.threadId });
    expect(await claimed(10, from())).toEqual([run.runId]);
  });

  test.each<[string, QueuedRun]>([
    ["another process has to take", { graph: "elsewhere" }],
    ["may not be executed yet, by a clock that was set back", { availableIn: 60 }],
  ])("keeps other runs of its thread from starting, also one that %s", async (_, run) => {
    const older = await waiting({ createdIn: -10 });
    await begun({ threadId: older.threadId, ...run });
    await waiting({ threadId: older.threadId });
    expect(await claimed()).toEqual([]);
    expect(await claimed(10, limited())).toEqual([]);
  });

  test("keeps its thread when a process says that the next run may start", async () => {
    const { threadId } = await begun({ availableIn: -5 });
    const behind = await waiting({ threadId, createdIn: -10, behind: true });
    await queue.advance(threadId);
    expect(await queue.advanceForgotten()).toEqual([]);
    expect((await opened.rows()).get(behind.runId)).toMatchObject({ behind: true });
  });

  test("is not set aside when it was delayed, but the delayed runs before it are", async () => {
    const { threadId, runId } = await begun({ createdIn: -10, availableIn: -5 });
    const older = await waiting({ threadId, createdIn: -20, availableIn: -5 });
    await queue.putBehind();
    const rows = await opened.rows();
    expect([rows.get(runId)?.["behind"], rows.get(older.runId)?.["behind"]]).toEqual([false, true]);
    expect(await claimed()).toEqual([runId]);
  });

  test("starts if it was set aside wrongly, whatever waits before it", async () => {
    const { threadId, runId } = await begun({ behind: true });
    await waiting({ threadId, createdIn: -10, behind: true });
    await waiting({ threadId, createdIn: -5 });
    expect(await claimed()).toEqual([]);
    expect(await queue.advanceForgotten()).toEqual([{ threadId, runId }]);
    expect(await claimed()).toEqual([runId]);
  });

  test("is the only one of its thread that has begun, whatever a process does", async () => {
    const run = await begun();
    const other = await waiting({ threadId: run.threadId });
    const start = database.query(
      "update threadloom.runs set status = 'running', attempt = 1 where run_id = $1",
      [other.runId],
    );
    await expect(start).rejects.toThrow("runs_one_begun_per_thread");
  });
});

describe("a run that waits behind others", () => {
  const isBehind = async ({ runId }: { runId: string }): Promise<unknown> =>
    (await opened.rows()).get(runId)?.["behind"];

  test("may start when it is the oldest of its thread, and only then", async () => {
    const threadId = await opened.aThread();
    const second = await waiting({ threadId, createdIn: -5, behind: true });
    const first = await waiting({ threadId, createdIn: -10, behind: true });
    await waiting({ threadId, createdIn: -20, availableIn: 60 });
    await opened.aRun({ threadId, createdIn: -30, behind: true, status: "success" });
    const elsewhere = await waiting({ behind: true });
    await queue.advance(threadId);
    expect([await isBehind(first), await isBehind(second), await isBehind(elsewhere)]).toEqual([
      false,
      true,
      true,
    ]);
    await queue.advance(threadId);
    expect(await isBehind(second)).toBe(true);
  });

  test("may start before a younger one that does not wait behind others", async () => {
    const threadId = await opened.aThread();
    const older = await waiting({ threadId, createdIn: -10, behind: true });
    await waiting({ threadId, createdIn: -5 });
    await queue.advance(threadId);
    expect(await isBehind(older)).toBe(false);
    expect(await claimed()).toEqual([older.runId]);
  });

  test("keeps waiting while one runs", async () => {
    const running = await opened.aRun({});
    const run = await waiting({ threadId: running.threadId, behind: true });
    await queue.advance(running.threadId);
    expect(await queue.advanceForgotten()).toEqual([]);
    expect(await isBehind(run)).toBe(true);
  });

  test("is found by a sweep if no process started it, on any of many threads", async () => {
    await database.query(
      `with made as (insert into threadloom.threads (thread_id) select gen_random_uuid() from generate_series(1, 700)
         returning thread_id)
       insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, behind)
       select gen_random_uuid(), thread_id, thread_id, 'test', status, '{}', 'enqueue', true
       from made, (values ('pending'), ('pending'), ('success')) as two (status)`,
    );
    const found = [...(await queue.advanceForgotten()), ...(await queue.advanceForgotten())];
    expect(new Set(found.map(({ threadId }) => threadId)).size).toBe(700);
    const rows = await database.query<{ status: string; threads: number }>(
      "select status, count(distinct thread_id)::int as threads from threadloom.runs where not behind group by status",
    );
    expect(rows).toEqual([{ status: "pending", threads: 700 }]);
    expect(await queue.advanceForgotten()).toEqual([]);
  });
});
