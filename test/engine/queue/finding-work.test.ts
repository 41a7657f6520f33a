import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import type { Queue } from "../../../src/engine/queue/queue.ts";
import type { ToRecover } from "../../../src/engine/queue/sql/find-to-recover.ts";
import type { Waiting } from "../../../src/engine/queue/sql/find-waiting.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { openQueue, type OpenQueue, type QueuedRun } from "./open-queue.ts";

/* The two statements that an idle server repeats: what they find. */

let opened: OpenQueue;
let database: Database;
beforeAll(async () => {
  opened = await openQueue();
  ({ database } = opened);
});
afterAll(async () => {
  await opened.close();
});
beforeEach(() => database.query("truncate threadloom.threads, threadloom.deliveries cascade"));

/** PostgreSQL refuses writes and row locks in such a transaction. */
const readOnly = <Result>(ask: (queue: Queue) => Promise<Result>): Promise<Result> =>
  database.transaction((transaction) => ask(opened.queueOn(transaction)), "begin read only");
const NOTHING_WAITS: Waiting = { runs: false, deliveries: false };
const NOTHING_TO_RECOVER: ToRecover = { lost: false, later: false, behind: false };

/** A transaction that changes or locks a row gets an id. */
const writingNothing = <Result>(ask: (queue: Queue) => Promise<Result>): Promise<Result> =>
  database.transaction(async (transaction) => {
    const found = await ask(opened.queueOn(transaction));
    expect(await transaction.query("select pg_current_xact_id_if_assigned() as id")).toEqual([{ id: null }]);
    return found;
  });
const findWaiting = (): Promise<Waiting> => writingNothing((queue) => queue.findWaiting());
const findToRecover = (): Promise<ToRecover> => writingNothing((queue) => queue.findToRecover(10));

const addDelivery = (state: string, dueIn: number) =>
  database.query(
    `insert into threadloom.deliveries (delivery_id, kind, thread_id, assistant_id, graph_id, url, receiver, run_status,
       metadata, config, context, multitask_strategy, values_omitted, run_created_at, run_ended_at, state, due_at)
     values ($1, 'webhook', $1, $1, 'test', 'https://a.example', 'a.example', 'success', '{}', '{}', '{}', 'enqueue', false, now(), now(), $2,
       now() + make_interval(secs => $3))`,
    [newId(), state, dueIn],
  );

describe("the poll finds", () => {
  test.each<[string, QueuedRun, Partial<Waiting>]>([
    ["a run that waits", { status: "pending" }, { runs: true }],
    ["a delayed run that is due", { status: "pending", createdIn: -10 }, { runs: true }],
    ["no delayed run before its time", { status: "pending", availableIn: 60 }, {}],
    ["no run behind others", { status: "pending", behind: true }, {}],
    ["no run of a graph of other servers", { status: "pending", graph: "other" }, {}],
    ["no running run", {}, {}],
    ["no ended run", { status: "success" }, {}],
    ["a run that lost its process", { status: "pending", lost: 2 }, { runs: true }],
  ])("%s", async (_, run, found) => {
    await opened.aRun(run);
    expect(await findWaiting()).toEqual({ ...NOTHING_WAITS, ...found });
  });

  test("runs of every lane", async () => {
    const run = await opened.aRun({ status: "pending" });
    for (const lane of [-5, 5]) {
      await database.query(
        `update threadloom.runs set caller = (select n::text from generate_series(1, 1000) n
           where sign(hashtext(n::text)) = sign($2::integer) limit 1) where run_id = $1`,
        [run.runId, lane],
      );
      expect(await findWaiting()).toMatchObject({ runs: true });
    }
  });

  test("webhooks that are due, and no others", async () => {
    await addDelivery("delivered", -60);
    await addDelivery("pending", 60);
    expect(await findWaiting()).toEqual(NOTHING_WAITS);
    await addDelivery("pending", -1);
    expect(await findWaiting()).toEqual({ ...NOTHING_WAITS, deliveries: true });
  });

  test("push notifications that are due, and no others", async () => {
    const { runId, threadId } = await opened.aRun({ status: "success" });
    const addPush = (state: string, dueIn: number) =>
      database.query(
        `insert into threadloom.deliveries (delivery_id, kind, thread_id, task_run_id, configuration, caller, receiver, state, due_at)
         values ($1, 'push', $2, $3, '{}', '', 'a.example', $4, now() + make_interval(secs => $5))`,
        [newId(), threadId, runId, state, dueIn],
      );
    for (const state of ["idle", "delivered", "failed"]) await addPush(state, -60);
    await addPush("pending", 60);
    expect(await findWaiting()).toEqual(NOTHING_WAITS);
    await addPush("pending", -1);
    expect(await findWaiting()).toEqual({ ...NOTHING_WAITS, deliveries: true });
  });
});

describe("the sweep finds", () => {
  test.each<[string, QueuedRun, Partial<ToRecover>]>([
    ["a run whose lease is over", { leaseFor: -1 }, { lost: true }],
    ["half a lease after its last heartbeat, a run whose server is gone", { leaseFor: 4 }, { lost: true }],
    ["no run whose lease is fresh", { leaseFor: 9 }, {}],
    ["no run that waits", { status: "pending" }, {}],
    ["a delayed run that is due", { status: "pending", createdIn: -10 }, { later: true }],
    ["no delayed run before its time", { status: "pending", availableIn: 60 }, {}],
    ["a run behind others", { status: "pending", behind: true }, { behind: true }],
  ])("%s", async (_, run, found) => {
    await opened.aRun({ workerId: newId(), ...run });
    expect(await findToRecover()).toEqual({ ...NOTHING_TO_RECOVER, ...found });
  });

  test("no run whose server lives, half a lease after its last heartbeat", async () => {
    const workerId = newId();
    await opened.aRun({ workerId, leaseFor: 4 });
    await database.transaction(async (transaction) => {
      await transaction.query("select pg_advisory_xact_lock_shared(hashtextextended($1, 0))", [workerId]);
      expect(await findToRecover()).toEqual(NOTHING_TO_RECOVER);
    });
  });
});

test("on a standby, which counts as an outage, both fail", async () => {
  await expect(readOnly((queue) => queue.findWaiting())).rejects.toMatchObject({ code: "25006" });
  await expect(readOnly((queue) => queue.findToRecover(10))).rejects.toMatchObject({ code: "25006" });
});
