import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { giveUpAttempt } from "../../../src/engine/queue/sql/requeue-attempt.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { openQueue, type OpenQueue, type QueuedRun } from "./open-queue.ts";

/** When a graph process ends, its runs return to the queue with a lost worker. */

const MAX_ATTEMPTS = 3;

let opened: OpenQueue;
beforeAll(async () => {
  opened = await openQueue();
});
afterAll(() => opened.close());
beforeEach(() => opened.database.query("delete from threadloom.threads"));

const LEASED = { status: "running", attempt: 2, leaseFor: 10 } as const;

const aLeasedRun = async (run: QueuedRun = {}) => {
  const workerId = newId();
  await opened.aRun({ ...LEASED, workerId });
  const mine = await opened.aRun({ ...LEASED, workerId, ...run });
  await opened.aRun({ ...LEASED, workerId });
  return mine;
};

test("an attempt that is given up waits again, with one more lost worker, and its thread has one more turn", async () => {
  const { threadId, runId, attempt } = await aLeasedRun();
  let kept: unknown;
  const changed = await opened.changes(async () => {
    kept = await giveUpAttempt(opened.database, { threadId, runId, attempt }, MAX_ATTEMPTS);
  });
  expect(kept).toBeUndefined();
  expect(changed).toEqual(
    new Map<string, unknown>([
      [runId, { status: "pending", worker_id: null, lease_until: null, lost_attempts: 1 }],
      [threadId, { turns: 1 }],
    ]),
  );
});

test.each<[string, QueuedRun, object]>([
  ["its last attempt", { lost: MAX_ATTEMPTS - 1 }, { cancel_action: null, lost_attempts: 2 }],
  ["a run that is to be cancelled", { cancel: "rollback" }, { cancel_action: "rollback", lost_attempts: 0 }],
])("%s stays with its current owner, who has to end it", async (_, run, row) => {
  const mine = await aLeasedRun(run);
  let kept: unknown;
  const changed = await opened.changes(async () => {
    kept = await giveUpAttempt(opened.database, mine, MAX_ATTEMPTS);
  });
  expect(kept).toEqual(row);
  expect(changed).toEqual(new Map());
});

test.each<[string, QueuedRun, number]>([
  ["that has been taken over", {}, -1],
  ["that waits", { status: "pending" }, 0],
  ["that has ended", { status: "success" }, 0],
])("an attempt of a run %s gives up nothing, and finds nothing to end", async (_, run, olderBy) => {
  const { attempt, ...mine } = await aLeasedRun(run);
  let kept: unknown;
  const changed = await opened.changes(async () => {
    kept = await giveUpAttempt(opened.database, { ...mine, attempt: attempt + olderBy }, MAX_ATTEMPTS);
  });
  expect(kept).toBeUndefined();
  expect(changed).toEqual(new Map());
});

test("a transaction that waited for the thread sees its holder's changes, and gives up no run of another attempt", async () => {
  const { threadId, runId, attempt } = await aLeasedRun();
  const kept = await opened.whileLocked(
    "threads",
    threadId,
    () => giveUpAttempt(opened.database, { threadId, runId, attempt }, MAX_ATTEMPTS),
    async (holder) => {
      await holder.query("update threadloom.runs set attempt = attempt + 1 where run_id = $1", [runId]);
    },
  );
  expect(kept).toBeUndefined();
  expect((await opened.rows()).get(runId)).toMatchObject({
    status: "running",
    attempt: attempt + 1,
    lost_attempts: 0,
  });
});
