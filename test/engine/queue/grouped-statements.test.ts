import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { RunOutcome } from "../../../src/engine/queue/attempts.ts";
import { createOnIdleThread, createWithThread } from "../../../src/engine/queue/sql/create.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { writeBatch, type Batch } from "../../../src/state/checkpoints/write.ts";
import { ALL_RIGHTS } from "../../helpers/access.ts";
import { aNewRun, ASSISTANT, openQueue, type OpenQueue } from "./open-queue.ts";

/** The first of several calls has a statement of its own; the others share one. */

const CLAIM = { workerId: newId(), leaseSeconds: 10, graphIds: ["test"] };
const SUCCESS: RunOutcome = { status: "success", error: null, threadStatus: "idle", interrupts: "{}" };

let opened: OpenQueue;
let database: Database;
beforeAll(async () => {
  opened = await openQueue();
  ({ database } = opened);
  await database.query(
    "insert into threadloom.assistants (assistant_id, graph_id, name, version) values ($1, 'test', 'test', 1)",
    [ASSISTANT],
  );
});
afterAll(() => opened.close());
beforeEach(() => database.query("delete from threadloom.threads"));

/** Counts the group's statements while `work` runs. */
const sharedBy = async <Result>(pattern: RegExp, work: () => Promise<Result>) => {
  let shared = 0;
  const { pool } = database;
  const query = pool.query.bind(pool) as (...given: unknown[]) => unknown;
  pool.query = ((...given: unknown[]) => {
    const text = typeof given[0] === "string" ? given[0] : (given[0] as { text: string }).text;
    if (pattern.test(text)) shared += 1;
    return query(...given);
  }) as typeof pool.query;
  try {
    return { result: await work(), shared };
  } finally {
    pool.query = query as typeof pool.query;
  }
};
const several = async <Item>(count: number, make: () => Promise<Item>): Promise<Item[]> => {
  const items: Item[] = [];
  while (items.length < count) items.push(await make());
  return items;
};

describe("runs that are created at the same time", () => {
  test("start on their own threads, except on busy ones", async () => {
    const threads = await several(5, opened.aThread);
    const busy = await opened.aRun({ status: "pending" });
    const { result, shared } = await sharedBy(/skip locked/, () =>
      Promise.all(
        [...threads.slice(0, 3), busy.threadId, ...threads.slice(3)].map((threadId, index) =>
          // The last one has no slot.
          createOnIdleThread(
            database,
            ALL_RIGHTS,
            aNewRun(threadId, { metadata: { owner: index } }),
            index === 5 ? undefined : CLAIM,
          ),
        ),
      ),
    );
    expect(shared).toBe(1);
    expect(
      result.map((row) => row && [row.thread_id, row.status, row.metadata["owner"], row.starts_empty]),
    ).toEqual([
      [threads[0], "running", 0, true],
      [threads[1], "running", 1, true],
      [threads[2], "running", 2, true],
      undefined,
      [threads[3], "running", 4, true],
      [threads[4], "pending", 5, false],
    ]);
    const rows = await database.query(
      "select thread_id from threadloom.threads where status = 'busy' and unfinished_runs = 1 and turns = 1",
    );
    expect(rows).toHaveLength(5);
  });

  test("make their own threads, except where one exists", async () => {
    const taken = await opened.aThread();
    const ids = [newId(), newId(), taken, newId()];
    const { result, shared } = await sharedBy(/ as list \(first, place\)/, () =>
      Promise.all(
        ids.map((threadId) => createWithThread(database, ALL_RIGHTS, aNewRun(threadId), CLAIM, undefined)),
      ),
    );
    expect(shared).toBe(1);
    expect(result.map((row) => row?.thread_id)).toEqual([ids[0], ids[1], undefined, ids[3]]);
  });

  test("wait alone for a thread that another transaction is making", async () => {
    const [taken, ...others] = await several(4, async () => newId());
    const create = (threadId: string, isNamed: boolean) =>
      createWithThread(database, ALL_RIGHTS, aNewRun(threadId), CLAIM, undefined, true, isNamed);
    let waiting: Promise<unknown> | undefined;
    await database.transaction(async (transaction) => {
      await transaction.query("insert into threadloom.threads (thread_id) values ($1)", [taken]);
      const created = [create(others[0]!, false)];
      waiting = create(taken!, true);
      created.push(...others.slice(1).map((threadId) => create(threadId, false)));
      expect((await Promise.all(created)).map((row) => row?.thread_id)).toEqual(others);
    });
    expect(await waiting).toBeUndefined();
  });

  test("wait alone for a locked thread", async () => {
    const threads = await several(4, opened.aThread);
    const created: string[] = [];
    const all = await opened.whileLocked(
      "threads",
      threads[2]!,
      () =>
        Promise.all(
          threads.map(async (threadId) => {
            const row = await createOnIdleThread(database, ALL_RIGHTS, aNewRun(threadId), CLAIM);
            created.push(threadId);
            return row?.status;
          }),
        ),
      async () => {
        while (created.length < 3) await new Promise((resolve) => setImmediate(resolve));
      },
    );
    expect(all).toEqual(["running", "running", "running", "running"]);
    expect(created.at(-1)).toBe(threads[2]);
  });
});

describe("runs that end at the same time", () => {
  test("free their threads, except for those that another attempt holds", async () => {
    const runs = await several(5, () => opened.aRun());
    const given = runs.map((run, index) => (index === 3 ? { ...run, attempt: 7 } : run));
    const outcomes = [
      SUCCESS,
      SUCCESS,
      { ...SUCCESS, threadStatus: "interrupted" as const },
      SUCCESS,
      SUCCESS,
    ];
    const { result, shared } = await sharedBy(/skip locked/, () =>
      Promise.all(given.map((attempt, index) => opened.ends.finish(attempt, outcomes[index]!))),
    );
    expect(shared).toBe(1);
    expect(result).toEqual([{ waiting: 0 }, { waiting: 0 }, { waiting: 0 }, undefined, { waiting: 0 }]);
    const rows = await opened.rows();
    expect(runs.map(({ runId }) => rows.get(runId)?.["status"])).toEqual([
      "success",
      "success",
      "success",
      "running",
      "success",
    ]);
    expect(runs.map(({ threadId }) => rows.get(threadId)?.["status"])).toEqual([
      "idle",
      "idle",
      "interrupted",
      "busy",
      "idle",
    ]);
  });
});

describe("checkpoints that are written at the same time", () => {
  const batchOf = (threadId: string): Batch => ({
    contents: [{ hash: newId(), text: `"content of ${threadId}"` }],
    checkpoints: [
      {
        checkpointNs: "",
        checkpointId: newId(),
        parentId: null,
        runId: null,
        metadata: JSON.stringify({ thread: threadId }),
        metadataText: "",
        names: newId(),
        record: `record of ${threadId}`,
        deltaChannels: [],
        writes: "",
      },
    ],
    writes: [
      {
        checkpointNs: "",
        checkpointId: newId(),
        taskId: newId(),
        runId: null,
        writes: [],
        text: `writes of ${threadId}`,
      },
    ],
  });

  test("are stored in their own threads, except for attempts that lost their run", async () => {
    const runs = await several(5, () => opened.aRun());
    const { result, shared } = await sharedBy(/skip locked/, () =>
      Promise.all(
        runs.map(({ threadId, runId }, index) =>
          writeBatch(database, {
            ...batchOf(threadId),
            threadId,
            fence: { kind: "attempt", runId, attempt: index === 2 ? 7 : 1 },
            asynchronous: true,
            last: undefined,
          }),
        ),
      ),
    );
    expect(shared).toBe(1);
    expect(result).toEqual([true, true, false, true, true]);
    for (const [index, { threadId }] of runs.entries()) {
      const rows = await database.query(
        `select record as text from threadloom.checkpoints where thread_id = $1
         union all select writes from threadloom.checkpoint_writes where thread_id = $1
         union all select content from threadloom.checkpoint_contents where thread_id = $1`,
        [threadId],
      );
      const own = [
        { text: `record of ${threadId}` },
        { text: `writes of ${threadId}` },
        { text: `"content of ${threadId}"` },
      ];
      expect(rows).toEqual(index === 2 ? [] : own);
    }
  });
});
