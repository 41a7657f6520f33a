import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunRow } from "../../../src/platform/database/tables.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { createBehindOthers } from "../../../src/engine/queue/sql/create.ts";
import { createOnIdleThread } from "../../../src/engine/queue/sql/create.ts";
import { createWithThread } from "../../../src/engine/queue/sql/create.ts";
import { lockThread } from "../../../src/engine/queue/sql/lock-threads.ts";
import { lockUnfinished } from "../../../src/engine/queue/sql/lock-unfinished.ts";
import { ALL_RIGHTS } from "../../helpers/access.ts";
import { aNewRun, ASSISTANT, openQueue, type OpenQueue } from "./open-queue.ts";

/** The order of a thread's attempts, whichever statement starts them, and however they end. */

const WORKER = newId();
const CLAIM = { workerId: WORKER, leaseSeconds: 10, graphIds: ["test"] };

let opened: OpenQueue;
beforeAll(async () => {
  opened = await openQueue();
  await opened.database.query(
    "insert into threadloom.assistants (assistant_id, graph_id, name, version) values ($1, 'test', 'test', 1)",
    [ASSISTANT],
  );
});
afterAll(() => opened.close());

const behind = async (threadId: string, afterSeconds = 0, resumable = false) => {
  const run = aNewRun(threadId, { afterSeconds, resumable });
  const rows = await opened.database.transaction((transaction) =>
    createBehindOthers(transaction, ALL_RIGHTS, [{ run }]),
  );
  return rows[0];
};
const claimed = async (): Promise<RunRow> => {
  const [run] = await opened.queue.claim(WORKER, 10, 1);
  if (run === undefined) throw new Error("Nothing could be claimed.");
  return run;
};
const finished = async (run: RunRow | undefined) => {
  if (run === undefined) throw new Error("There is no run to finish.");
  const { thread_id: threadId, run_id: runId, attempt } = run;
  const outcome = { status: "success", error: null, threadStatus: "idle", interrupts: "{}" } as const;
  await opened.ends.finish({ threadId, runId, attempt }, outcome);
  await opened.queue.advance(threadId);
};

test("attempts are numbered from 1 in the order in which they begin", async () => {
  const threadId = newId();
  const first = await createWithThread(opened.database, ALL_RIGHTS, aNewRun(threadId), CLAIM, undefined);
  const [second, third] = [await behind(threadId), await behind(threadId)];
  expect([first, second, third].map((run) => run?.turn)).toEqual([1, 0, 0]);
  await finished(first);
  const claims = [await claimed()];
  await finished(claims[0]);
  claims.push(await claimed());
  await finished(claims[1]);
  expect(claims.map((run) => [run.run_id, run.turn])).toEqual([
    [second?.run_id, 2],
    [third?.run_id, 3],
  ]);
  const fourth = await createOnIdleThread(opened.database, ALL_RIGHTS, aNewRun(threadId), CLAIM);
  expect(fourth?.turn).toBe(4);
  await finished(fourth);
  // Without a slot the run begins when it is claimed.
  const fifth = await createOnIdleThread(opened.database, ALL_RIGHTS, aNewRun(threadId), undefined);
  expect([fifth?.turn, (await claimed()).turn]).toEqual([0, 5]);
});

test("a run that never began has a turn of its own, resumable or not", async () => {
  const threadId = newId();
  const first = await createWithThread(opened.database, ALL_RIGHTS, aNewRun(threadId), CLAIM, undefined);
  const waiting = [];
  for (const resumable of [true, false, true]) waiting.push(await behind(threadId, 0, resumable));
  const cancel = async (runIds: (string | undefined)[]) =>
    await opened.database.transaction(async (transaction) => {
      await lockThread(transaction, threadId);
      const runs = await lockUnfinished(transaction, threadId);
      const meant = runs.filter(({ run_id: runId }) => runIds.includes(runId));
      await opened.ends.cancelWaiting(transaction, meant, "interrupt", "requested");
    });
  const turns = async () =>
    await opened.database.query<{ run_id: string; turn: number }>(
      "select run_id, turn from threadloom.runs where thread_id = $1 order by created_at, run_id",
      [threadId],
    );
  await cancel(waiting.map((run) => run?.run_id));
  await finished(first);
  const alone = await behind(threadId, 3_600, true);
  await cancel([alone?.run_id]);
  await behind(threadId);
  const last = await claimed();
  const all = (await turns()).map(({ turn }) => turn);
  expect(all[0]).toBe(1);
  expect(all).toEqual([...new Set(all)].sort((a, b) => a - b));
  expect(last.turn).toBe(all.at(-1));
});

test.each(["is handed back", "loses its worker"])(
  "an attempt that %s is followed by a later one of its run, and then by older runs that are due",
  async (how) => {
    const threadId = newId();
    // Older than the running one, and due only when that waits again.
    const late = await createWithThread(
      opened.database,
      ALL_RIGHTS,
      aNewRun(threadId, { afterSeconds: 3_600 }),
      undefined,
      undefined,
    );
    const run = await behind(threadId);
    const first = await claimed();
    expect([first.run_id, first.turn]).toEqual([run?.run_id, 1]);
    if (how === "is handed back") {
      await opened.queue.handBack({ threadId, runId: first.run_id, attempt: 1 });
    } else {
      await opened.database.query(
        "update threadloom.runs set lease_until = now() - interval '1 second' where run_id = $1",
        [first.run_id],
      );
      expect(await opened.queue.requeueLost(10)).toMatchObject([{ run_id: first.run_id }]);
    }
    await opened.database.query("update threadloom.runs set available_at = now() where run_id = $1", [
      late?.run_id,
    ]);
    const again = await claimed();
    expect([again.run_id, again.attempt]).toEqual([first.run_id, 2]);
    await finished(again);
    const after = await claimed();
    expect(after.run_id).toBe(late?.run_id);
    await finished(after);
    expect(again.turn).toBeGreaterThan(first.turn);
    expect(after.turn).toBeGreaterThan(again.turn);
  },
);

test("a run whose thread is locked is left to the next sweep", async () => {
  const run = await opened.aRun({ attempt: 1, leaseFor: -1, workerId: newId() });
  await opened.database.transaction(async (transaction) => {
    await transaction.query("select from threadloom.threads where thread_id = $1 for no key update", [
      run.threadId,
    ]);
    expect(await opened.queue.requeueLost(10)).toEqual([]);
  });
  expect(await opened.queue.requeueLost(10)).toMatchObject([{ run_id: run.runId }]);
});
