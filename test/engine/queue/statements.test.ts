import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import { createGrouping } from "../../../src/platform/database/grouping.ts";
import type { RunRow } from "../../../src/platform/database/tables.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import type { JsonObject } from "../../../src/platform/lib/json.ts";
import { announceReader } from "../../../src/engine/queue/sql/announce-reader.ts";
import { askToCancel } from "../../../src/engine/queue/sql/ask-to-cancel.ts";
import { createBehindOthers } from "../../../src/engine/queue/sql/create.ts";
import { createOnIdleThread } from "../../../src/engine/queue/sql/create.ts";
import { createWithThread } from "../../../src/engine/queue/sql/create.ts";
import type { NewRun } from "../../../src/engine/queue/sql/create.ts";
import { endingWaiting } from "../../../src/engine/queue/sql/end-waiting.ts";
import { lockThread, lockThreads } from "../../../src/engine/queue/sql/lock-threads.ts";
import { lockUnfinishedOf, lockUnfinished } from "../../../src/engine/queue/sql/lock-unfinished.ts";
import { removeEnded } from "../../../src/engine/queue/sql/remove-ended.ts";
import { createRunRepository, type RunRepository } from "../../../src/api/runs/repository.ts";
import { aNewRun, ASSISTANT, openQueue, type OpenQueue, type QueuedRun } from "./open-queue.ts";
import { ALL_RIGHTS, EVERY_ASSISTANT, EVERY_THREAD } from "../../helpers/access.ts";

/** Each statement may change only the intended rows, so others stand before and after them. */

const [WORKER, READER] = [newId(), newId()];
const OF_ASSISTANT = { graph_id: "test", assistant_id: ASSISTANT };
const CLAIM = { workerId: WORKER, leaseSeconds: 10, graphIds: ["test"] };
const CONFIG = { configurable: { tone: "before" } };

let opened: OpenQueue;
let database: Database;
let repository: RunRepository;
beforeAll(async () => {
  opened = await openQueue();
  ({ database } = opened);
  repository = createRunRepository(database);
  await database.query(
    "insert into threadloom.assistants (assistant_id, graph_id, name, version) values ($1, 'test', 'test', 1)",
    [ASSISTANT],
  );
});
afterAll(() => opened.close());
beforeEach(() => database.query("delete from threadloom.threads"));

const aThread = async (metadata: JsonObject = {}, config: JsonObject = CONFIG): Promise<string> => {
  const threadId = await opened.aThread();
  await database.query("update threadloom.threads set metadata = $2, config = $3 where thread_id = $1", [
    threadId,
    JSON.stringify(metadata),
    JSON.stringify(config),
  ]);
  return threadId;
};
const OF_ANOTHER = { graph_id: "another", assistant_id: "another" };
/** An idle thread between two others that must stay unchanged. */
const anIdleThread = async (metadata?: JsonObject, config?: JsonObject): Promise<string> => {
  const another = () => aThread(OF_ANOTHER, { configurable: { tone: "another" } });
  await another();
  const threadId = await aThread(metadata, config);
  await another();
  return threadId;
};

const replacedBy = async (run: RunRow | undefined) => {
  const [row] = await database.query<{ metadata: unknown; config: unknown }>(
    "select replaced_metadata as metadata, replaced_config as config from threadloom.runs where run_id = $1",
    [run?.run_id],
  );
  return row;
};
const behind = async (run: NewRun, replaced = 0) => {
  const behindOthers = { run, replacedPending: replaced, pendingAtMost: null };
  const rows = await database.transaction((transaction) =>
    createBehindOthers(transaction, ALL_RIGHTS, [behindOthers]),
  );
  return rows[0];
};

/** The two statements that create a run on an existing thread. */
const WAYS: [string, (run: NewRun) => Promise<RunRow | undefined>][] = [
  ["on an idle thread", (run) => createOnIdleThread(database, ALL_RIGHTS, run, CLAIM)],
  ["behind others", (run) => behind(run)],
];

describe.each(WAYS)("a run that is created %s", (_, create) => {
  test("makes its thread busy and counts for its assistant, and changes no other", async () => {
    const threadId = await anIdleThread({ mine: 1 });
    const keptConfig = { configurable: { tone: "mine" } };
    const changed = await opened.changes(() => create(aNewRun(threadId, { keptConfig })));
    expect(changed).toEqual(
      new Map([
        [
          threadId,
          {
            status: "busy",
            unfinished_runs: 1,
            turns: 1,
            metadata: { mine: 1, ...OF_ASSISTANT },
            config: keptConfig,
          },
        ],
      ]),
    );
  });

  test.each<[string, JsonObject, JsonObject | null]>([
    ["another graph and assistant", { ...OF_ANOTHER, mine: 1 }, OF_ANOTHER],
    ["none", { mine: 1 }, {}],
    ["these already", { ...OF_ASSISTANT, mine: 1 }, null],
  ])("stores the replaced values for its rollback: %s", async (_, metadata, replaced) => {
    const run = await create(aNewRun(await anIdleThread(metadata)));
    expect(await replacedBy(run)).toEqual({ metadata: replaced, config: null });
  });

  test("stores the replaced configuration, if it differs", async () => {
    const other = await create(
      aNewRun(await anIdleThread(OF_ASSISTANT), { keptConfig: { configurable: { tone: "mine" } } }),
    );
    expect(await replacedBy(other)).toEqual({ metadata: null, config: CONFIG });
    const same = await create(aNewRun(await anIdleThread(OF_ASSISTANT), { keptConfig: CONFIG }));
    expect(await replacedBy(same)).toEqual({ metadata: null, config: null });
  });

  test("does not treat a concurrent change of the configuration as its own", async () => {
    const threadId = await anIdleThread(OF_ASSISTANT);
    const run = await opened.whileLocked(
      "threads",
      threadId,
      () => create(aNewRun(threadId)),
      async (holder) => {
        await holder.query("update threadloom.threads set config = '{}' where thread_id = $1", [threadId]);
      },
    );
    expect(await replacedBy(run)).toEqual({ metadata: null, config: null });
  });
});

describe("the statement for an idle thread", () => {
  const NOBODYS = {
    status: "pending",
    attempt: 0,
    worker_id: null,
    started_at: null,
    lease_until: null,
  };
  test.each([
    [
      "has its worker at once if a slot is free",
      CLAIM,
      {
        status: "running",
        attempt: 1,
        worker_id: WORKER,
        started_at: expect.any(Date),
        lease_until: expect.any(Date),
      },
    ],
    ["has no worker without a free slot", undefined, NOBODYS],
    ["has no worker if its graph is not hosted", { ...CLAIM, graphIds: ["other"] }, NOBODYS],
  ])("stores a run that %s", async (_, claim, expected) => {
    const row = await createOnIdleThread(database, ALL_RIGHTS, aNewRun(await anIdleThread()), claim);
    expect(row).toMatchObject(expected);
    if (claim === CLAIM)
      expect(row?.lease_until?.getTime()).toBe(
        (row?.started_at?.getTime() ?? 0) + CLAIM.leaseSeconds * 1_000,
      );
  });

  test("stores nothing on a busy thread", async () => {
    const { threadId } = await opened.aRun({ status: "pending" });
    const before = await opened.rows();
    expect(await createOnIdleThread(database, ALL_RIGHTS, aNewRun(threadId), CLAIM)).toBeUndefined();
    expect(await opened.rows()).toEqual(before);
  });

  test("stores nothing if another run is stored while it waits for the thread", async () => {
    const threadId = await anIdleThread();
    const first = aNewRun(threadId);
    const second = await opened.whileLocked(
      "threads",
      threadId,
      () => createOnIdleThread(database, ALL_RIGHTS, aNewRun(threadId), CLAIM),
      async (holder) => {
        const grouped = createGrouping(holder, pino({ level: "silent" }));
        await createOnIdleThread({ grouped }, ALL_RIGHTS, first, undefined);
      },
    );
    expect(second).toBeUndefined();
    const rows = await database.query("select run_id, status from threadloom.runs");
    expect(rows).toEqual([{ run_id: first.runId, status: "pending" }]);
  });

  /** The value that tells an attempt whether it can skip reading the state. */
  const startsEmpty = async (threadId: string, isClaimed = true) =>
    (await createOnIdleThread(database, ALL_RIGHTS, aNewRun(threadId), isClaimed ? CLAIM : undefined))
      ?.starts_empty;
  const aCheckpoint = (threadId: string) =>
    database.query(
      `insert into threadloom.checkpoints (thread_id, checkpoint_ns, checkpoint_id, metadata, names, record, seq)
       values ($1, '', $1, '{}', $1, '', 1)`,
      [threadId],
    );

  test("reports that a thread has no state only if that is certain", async () => {
    await aCheckpoint(await aThread());
    expect(await startsEmpty(await aThread())).toBe(true);
    // The run waits in the queue, so state may be written before it starts.
    expect(await startsEmpty(await aThread(), false)).toBe(false);
    const withState = await aThread();
    await aCheckpoint(withState);
    expect(await startsEmpty(withState)).toBe(false);
  });

  test("does not report it for a thread whose state is being written", async () => {
    const threadId = await aThread();
    const said = await opened.whileLocked(
      "threads",
      threadId,
      () => startsEmpty(threadId),
      async (holder) => {
        await holder.query(
          "update threadloom.threads set state_updated_at = clock_timestamp() where thread_id = $1",
          [threadId],
        );
      },
    );
    expect(said).toBe(false);
  });
});

describe("the statement for a missing thread", () => {
  test("stores nothing if the thread exists", async () => {
    const threadId = await anIdleThread();
    const before = await opened.rows();
    expect(await createWithThread(database, ALL_RIGHTS, aNewRun(threadId), CLAIM, undefined)).toBeUndefined();
    expect(await opened.rows()).toEqual(before);
  });
});

describe("the statement for a thread with other runs", () => {
  test.each<[string, QueuedRun | undefined, Partial<NewRun>, boolean]>([
    ["nothing", undefined, {}, false],
    ["one that runs", { status: "running" }, {}, true],
    ["one that waits", { status: "pending" }, {}, true],
    ["one that may not start yet", { status: "pending", availableIn: 60 }, {}, false],
    ["one that has ended", { status: "success" }, {}, false],
    ["one that runs, where it may not start yet itself", { status: "running" }, { afterSeconds: 60 }, false],
  ])("decides whether a run has to wait: %s", async (_, other, given, waits) => {
    await opened.aRun({ status: "running" });
    const threadId = await aThread();
    if (other !== undefined) await opened.aRun({ threadId, ...other });
    const run = await behind(aNewRun(threadId, given));
    const rows = await database.query("select behind from threadloom.runs where run_id = $1", [run?.run_id]);
    expect(rows).toEqual([{ behind: waits }]);
  });

  test("counts it in place of the ones that it replaces", async () => {
    const threadId = await aThread();
    for (let runs = 0; runs < 5; runs += 1) await opened.aRun({ threadId, status: "pending" });
    const changed = await opened.changes(() => behind(aNewRun(threadId), 3));
    expect(changed.get(threadId)).toMatchObject({ unfinished_runs: 3 });
  });

  test("makes the thread busy whatever its status was", async () => {
    const threadId = await aThread();
    await behind(aNewRun(threadId));
    expect((await opened.rows()).get(threadId)).toMatchObject({ status: "busy" });
  });
});

describe("locking", () => {
  /** Three threads in the order of their ids, each with a running, a waiting and an ended run. */
  const threads = async () => {
    const ids = [await aThread(), await aThread(), await aThread()].sort();
    const made = [];
    for (const threadId of ids) {
      // The later one has the smaller id.
      const waits = await opened.aRun({ threadId, status: "pending", createdIn: 10 });
      const runs = await opened.aRun({ threadId, status: "running", createdIn: 5 });
      const ended = await opened.aRun({ threadId, status: "success", createdIn: 1 });
      made.push({ threadId, waits: waits.runId, runs: runs.runId, ended: ended.runId });
    }
    return made as [(typeof made)[0], (typeof made)[0], (typeof made)[0]];
  };
  const isFree: OpenQueue["isFree"] = (table, id) => opened.isFree(table, id);

  test("a thread locks it, if it exists", async () => {
    const [one, two] = await threads();
    await database.transaction(async (transaction) => {
      expect(await lockThread(transaction, newId())).toBe(false);
      expect(await isFree("threads", one.threadId)).toBe(true);
      expect(await lockThread(transaction, one.threadId)).toBe(true);
      expect(await isFree("threads", one.threadId)).toBe(false);
      expect(await isFree("threads", two.threadId)).toBe(true);
    });
  });

  test("threads begins with the smallest id, and returns the existing ones", async () => {
    const [one, two, three] = await threads();
    const found = await opened.whileLocked(
      "threads",
      two.threadId,
      () =>
        database.transaction((transaction) =>
          lockThreads(transaction, EVERY_THREAD, [two.threadId, newId(), one.threadId]),
        ),
      async () => {
        expect(await isFree("threads", one.threadId)).toBe(false);
        expect(await isFree("threads", three.threadId)).toBe(true);
      },
    );
    expect(found).toEqual(new Set([one.threadId, two.threadId]));
  });

  test("the unfinished runs of threads begins with the smallest id, and locks no others", async () => {
    const [one, two, three] = await threads();
    const named = [three.threadId, two.threadId];
    await opened.whileLocked(
      "runs",
      three.runs,
      () => database.transaction((transaction) => lockUnfinishedOf(transaction, named)),
      async () => {
        for (const id of [two.waits, two.runs, three.waits]) expect(await isFree("runs", id)).toBe(false);
        for (const id of [two.ended, one.waits, one.runs]) expect(await isFree("runs", id)).toBe(true);
      },
    );
  });

  test("the unfinished runs of a thread returns them in the order of their creation", async () => {
    const [one, two] = await threads();
    await database.transaction(async (transaction) => {
      const runs = await lockUnfinished(transaction, one.threadId);
      expect(runs.map((run) => [run.run_id, run.status])).toEqual([
        [one.runs, "running"],
        [one.waits, "pending"],
      ]);
      for (const id of [one.waits, one.runs]) expect(await isFree("runs", id)).toBe(false);
      for (const id of [one.ended, two.waits, two.runs]) expect(await isFree("runs", id)).toBe(true);
    });
  });
});

describe("of several runs", () => {
  test("only the named ones are ended, or removed if they had ended before", async () => {
    const threadId = await aThread();
    const pending = (attempt: number) => opened.aRun({ threadId, status: "pending", attempt });
    const ended = () => opened.aRun({ threadId, status: "success" });
    const [named, gone] = [await pending(1), await ended()];
    const waits = await pending(0);
    await ended();
    const changed = await opened.changes(async () => {
      await endingWaiting(undefined)(database, [{ thread_id: threadId, run_id: named.runId }], "taken");
      await removeEnded(database, gone);
      await removeEnded(database, waits);
    });
    expect(changed).toEqual(
      new Map<string, unknown>([
        [named.runId, { status: "interrupted", cancel_reason: "taken" }],
        [gone.runId, null],
      ]),
    );
  });

  test("the named running ones are asked to stop; a pending rollback stays, and the first reason counts", async () => {
    const running = (run: QueuedRun = {}) => opened.aRun({ status: "running", ...run });
    const runs = {
      plain: await running(),
      interrupted: await running({ cancel: "interrupt" }),
      takenBack: await running({ cancel: "rollback" }),
      waits: await running({ status: "pending" }),
    };
    await running();
    const ids = Object.values(runs).map(({ threadId, runId }) => ({ thread_id: threadId, run_id: runId }));
    expect(await opened.changes(() => askToCancel(database, ids, "interrupt", "taken"))).toEqual(
      new Map<string, unknown>([
        [runs.plain.runId, { cancel_action: "interrupt", cancel_reason: "taken" }],
        [runs.interrupted.runId, { cancel_reason: "taken" }],
        [runs.takenBack.runId, { cancel_reason: "taken" }],
      ]),
    );
    expect(await opened.changes(() => askToCancel(database, ids, "rollback", "requested"))).toEqual(
      new Map([
        [runs.plain.runId, { cancel_action: "rollback" }],
        [runs.interrupted.runId, { cancel_action: "rollback" }],
      ]),
    );
  });

  test("one is found by its id and its own thread only", async () => {
    await opened.aRun({ status: "success" });
    const run = await opened.aRun({ status: "pending" });
    const other = await opened.aRun({ status: "running" });
    expect(await repository.find(EVERY_THREAD, run)).toMatchObject({ run_id: run.runId, status: "pending" });
    expect(await repository.findAwaited(EVERY_THREAD, run)).toMatchObject({ status: "pending" });
    expect(await repository.threadOf(EVERY_THREAD, run.runId)).toBe(run.threadId);
    for (const elsewhere of [
      { runId: run.runId, threadId: other.threadId },
      { runId: newId(), threadId: run.threadId },
    ]) {
      expect(await repository.find(EVERY_THREAD, elsewhere)).toBeUndefined();
      expect(await repository.findAwaited(EVERY_THREAD, elsewhere)).toBeUndefined();
    }
  });
});

test("the pending interrupts are those of the thread", async () => {
  const ids = [await aThread(), await aThread(), await aThread()];
  for (const [index, threadId] of ids.entries()) {
    const questions = JSON.stringify({ task: [{ id: String(index) }] });
    await database.query("update threadloom.threads set interrupts = $2 where thread_id = $1", [
      threadId,
      questions,
    ]);
  }
  expect(await repository.interrupts(EVERY_THREAD, ids[1] ?? "")).toEqual({ task: [{ id: "1" }] });
  expect(await repository.interrupts(EVERY_THREAD, newId())).toEqual({});
});

test("only a row with this id exists", async () => {
  const threadId = await aThread();
  expect([
    await repository.threadExists(EVERY_THREAD, threadId),
    await repository.threadExists(EVERY_THREAD, newId()),
  ]).toEqual([true, false]);
  expect([
    await repository.assistantExists(EVERY_ASSISTANT, ASSISTANT),
    await repository.assistantExists(EVERY_ASSISTANT, newId()),
  ]).toEqual([true, false]);
});

test("the phase of a run is the one that another process sees", async () => {
  const phase = async (run: QueuedRun) => await repository.phaseOf(await opened.aRun(run), WORKER);
  expect(await phase({ status: "success" })).toBe("ended");
  expect(await phase({ status: "running", workerId: newId() })).toBe("running");
  expect(await phase({ status: "pending" })).toBe("pending");
  // This process has just claimed the run, and is about to begin it.
  expect(await phase({ status: "running", workerId: WORKER })).toBe("pending");
  expect(await repository.phaseOf({ threadId: newId(), runId: newId() }, WORKER)).toBe("ended");
});

describe("the reader of a run", () => {
  const NOBODY_ALONE = "00000000-0000-0000-0000-000000000000";
  /** The fields that the announcement of READER changes. */
  const announced = async (run: QueuedRun, readerId: string | null = null) => {
    await opened.aRun({ status: "running" });
    const selector = await opened.aRun(run);
    const { runId } = selector;
    await database.query("update threadloom.runs set reader_id = $2 where run_id = $1", [runId, readerId]);
    const changed = await opened.changes(() => announceReader(database, selector, READER));
    expect([...changed.keys()].filter((id) => id !== runId)).toEqual([]);
    return changed.get(runId);
  };

  test.each(["pending", "running"])(
    "is stored in a run that is %s; of two readers neither is",
    async (status) => {
      expect(await announced({ status })).toEqual({ reader_id: READER });
      expect(await announced({ status }, READER)).toBeUndefined();
      expect(await announced({ status }, newId())).toEqual({ reader_id: NOBODY_ALONE });
    },
  );

  test("isn't stored in an ended run, or in one that it executes itself", async () => {
    expect(await announced({ status: "success" })).toBeUndefined();
    expect(await announced({ status: "running", workerId: READER })).toBeUndefined();
    expect(await announced({ status: "running", workerId: newId() })).toEqual({ reader_id: READER });
  });
});

test("a run that may not wait is stored only if it starts at once, on an idle thread or on a thread of its own", async () => {
  const elsewhere = { ...CLAIM, graphIds: ["another"] };
  for (const claim of [undefined, elsewhere]) {
    const run = aNewRun(await anIdleThread());
    expect(await createOnIdleThread(database, ALL_RIGHTS, run, claim, false)).toBeUndefined();
    const own = aNewRun(newId());
    expect(await createWithThread(database, ALL_RIGHTS, own, claim, undefined, false)).toBeUndefined();
  }
  const run = aNewRun(await anIdleThread());
  expect(await createOnIdleThread(database, ALL_RIGHTS, run, CLAIM, false)).toMatchObject({
    status: "running",
  });
  expect(
    await createWithThread(database, ALL_RIGHTS, aNewRun(newId()), CLAIM, undefined, false),
  ).toMatchObject({ status: "running" });
});
