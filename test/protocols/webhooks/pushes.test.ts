import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createDeliveries, recordDeliveries } from "../../../src/engine/outbox/deliveries.ts";
import {
  createPushes,
  recordPushes,
  toSentPush,
  type PushConfig,
} from "../../../src/engine/outbox/pushes.ts";
import type { RunOutcome } from "../../../src/engine/queue/attempts.ts";
import { createRunEnds } from "../../../src/engine/queue/ending.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import { ALL_RIGHTS } from "../../helpers/access.ts";
import { eventually } from "../../helpers/conditions.ts";
import { aRunningRun, openStorage, type OpenStorage } from "../../state/checkpoints/open-storage.ts";

/** Push notifications in the outbox: what the statement that ends a run does with them. */

let opened: OpenStorage;
let database: Database;
beforeAll(async () => {
  opened = await openStorage();
  ({ database } = opened);
});
afterAll(() => opened.close());

const SUCCESS: RunOutcome = { status: "success", error: null, threadStatus: "idle", interrupts: "{}" };
const CONFIG: PushConfig = {
  ...{ id: "one", url: "https://hooks.example.com/", token: "", scheme: "", credentials: "", version: "1.0" },
};

/** Counts the statements of what runs on it. */
const counting = () => {
  const statements: string[] = [];
  const counted: Database = {
    ...database,
    query: (text, values) => {
      statements.push(text);
      return database.query(text, values);
    },
    grouped: async (statement, source) => (await statement.query(counted, [source]))[0],
    transaction: (work, begin) => {
      statements.push("begin");
      return database.transaction(work, begin);
    },
  };
  return { counted, statements };
};
const endsOn = (on: Database) => createRunEnds(on, opened.storage, undefined, recordPushes);
const aRun = async () => {
  const run = await aRunningRun(database);
  await database.query("update threadloom.threads set unfinished_runs = 1 where thread_id = $1", [
    run.threadId,
  ]);
  return run;
};
const taskOf = ({ threadId, runId }: { threadId: string; runId: string }) => ({
  threadId,
  firstRunId: runId,
});
const stateOf = async ({ runId }: { runId: string }): Promise<string | undefined> => {
  const text = "select state from threadloom.deliveries where task_run_id = $1";
  return (await database.query<{ state: string }>(text, [runId]))[0]?.state;
};

test("a run on a thread without configurations ends with one statement, which does not name them", async () => {
  const { counted, statements } = counting();
  const run = await aRun();
  expect(await endsOn(counted).finish(run, SUCCESS)).toEqual({ waiting: 0 });
  expect(statements).toHaveLength(1);
  expect(statements.join()).not.toContain("threadloom.deliveries");
});

test.each([
  ["first", []],
  ["second", [{ ...CONFIG, id: "zero" }]],
])("a configuration that is stored while its run ends is sent, as the %s", async (_, former) => {
  const run = await aRun();
  const others = createPushes(database);
  for (const config of former) await others.set(taskOf(run), config, ALL_RIGHTS.threads);
  let ending: Promise<unknown> | undefined;
  await database.transaction(async (transaction) => {
    const inside = {
      ...database,
      transaction: (work: (on: typeof transaction) => unknown) => work(transaction),
    };
    const pushes = createPushes(inside as unknown as Database);
    expect(await pushes.set(taskOf(run), CONFIG, ALL_RIGHTS.threads)).toBe("idle");
    ending = endsOn(database).finish(run, SUCCESS);
    await eventually("the end waits for the thread", async () => {
      const waiting = await database.query(
        "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      return waiting.length > 0;
    });
  });
  expect(await ending).toEqual({ waiting: 0, pushes: true });
  expect(await others.list(taskOf(run))).toEqual([...former, CONFIG]);
  const states = await database.query(
    "select distinct state from threadloom.deliveries where task_run_id = $1",
    [run.runId],
  );
  expect(states).toEqual([{ state: "pending" }]);
});

test("the configuration of a message is due at once if its run has ended before", async () => {
  const [ended, running] = [await aRun(), await aRun()];
  await endsOn(database).finish(ended, SUCCESS);
  const pushes = createPushes(database);
  expect(await pushes.set(taskOf(ended), CONFIG, ALL_RIGHTS.threads, ended.runId)).toBe("due");
  expect(await pushes.set(taskOf(ended), CONFIG, ALL_RIGHTS.threads, ended.runId)).toBe("idle");
  expect(await pushes.set(taskOf(running), CONFIG, ALL_RIGHTS.threads, running.runId)).toBe("idle");
  expect([await stateOf(ended), await stateOf(running)]).toEqual(["pending", "idle"]);
  expect(
    await pushes.set({ threadId: ended.threadId, firstRunId: randomUUID() }, CONFIG, ALL_RIGHTS.threads),
  ).toBe("gone");
});

test("the end of a run with a webhook makes its delivery and the configurations of its thread due", async () => {
  const run = await aRun();
  await database.query("update threadloom.runs set webhook = $2 where run_id = $1", [
    run.runId,
    "https://hooks.example.com/",
  ]);
  await createPushes(database).set(taskOf(run), CONFIG, ALL_RIGHTS.threads);
  const ends = createRunEnds(database, opened.storage, recordDeliveries, recordPushes);
  const final = { values: null, omitted: false };
  expect(await ends.finish(run, { ...SUCCESS, final })).toEqual({ waiting: 0, pushes: true });
  const rows = await database.query(
    "select kind, state from threadloom.deliveries where thread_id = $1 order by kind",
    [run.threadId],
  );
  expect(rows).toEqual([
    { kind: "push", state: "pending" },
    { kind: "webhook", state: "pending" },
  ]);
});

test("an end during a delivery makes it due again, whatever the result of the delivery is", async () => {
  const run = await aRun();
  const pushes = createPushes(database);
  const deliveries = createDeliveries(database);
  await pushes.set(taskOf(run), CONFIG, ALL_RIGHTS.threads);
  await endsOn(database).finish(run, SUCCESS);
  const claim = async () => {
    const places = { receiver: 100, caller: 100 };
    const { held } = await deliveries.claim({
      limit: 100,
      places,
      underWay: [],
      own: true,
      leaseSeconds: 60,
    });
    for (const each of held) {
      const read = await deliveries.readPush(each);
      if (read?.task_run_id === run.runId) return each;
    }
    return undefined;
  };
  const first = (await claim())!;
  expect(toSentPush((await deliveries.readPush(first))!)).toEqual({ ...CONFIG, ...taskOf(run) });
  await database.query("update threadloom.runs set status = 'running' where run_id = $1", [run.runId]);
  await database.query("update threadloom.threads set unfinished_runs = 1 where thread_id = $1", [
    run.threadId,
  ]);
  await endsOn(database).finish(run, SUCCESS);
  await deliveries.delivered(first, 204);
  expect(await stateOf(run)).toBe("pending");
  const second = (await claim())!;
  expect(second.attempt).toBeGreaterThan(first.attempt);
  await deliveries.delivered(second, 204);
  expect(await stateOf(run)).toBe("delivered");
  expect(await claim()).toBeUndefined();
});

describe("beside 20,000 configurations of other tasks and 20,000 runs", () => {
  const MANY = 20_000;
  beforeAll(async () => {
    await database.query(
      `with thread as (
        insert into threadloom.threads (thread_id) select gen_random_uuid() from generate_series(1, $1) returning thread_id),
      run as (
        insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, attempt)
        select gen_random_uuid(), thread_id, thread_id, 'test', 'success', '{}', 'enqueue', 1 from thread
        returning run_id, thread_id)
      insert into threadloom.deliveries (delivery_id, kind, thread_id, task_run_id, configuration, caller, receiver, state, due_at)
      select gen_random_uuid(), 'push', thread_id, run_id, '{}', '', 'x', case when random() < 0.5 then 'idle' else 'delivered' end, now()
      from run`,
      [MANY],
    );
    await database.query("vacuum analyze threadloom.deliveries, threadloom.runs, threadloom.threads");
  });

  test("each statement reads only the rows of its task, or those that are due", async () => {
    const read = new Map<string, number>();
    interface Node {
      "Actual Rows": number;
      "Actual Loops": number;
      "Rows Removed by Filter"?: number;
      "Relation Name"?: string;
      Plans?: Node[];
    }
    const nodesOf = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];
    /** Executes each statement once more, explained and taken back. */
    const explaining = (on: Pick<Database, "query" | "transaction">): Database => ({
      ...database,
      async query<Row>(text: string, values: unknown[] = []): Promise<Row[]> {
        if (/threadloom\.deliveries/.test(text)) {
          await on.query("savepoint explained");
          const [row] = await on.query<{ "QUERY PLAN": { Plan: Node }[] }>(
            `explain (analyze, format json) ${text}`,
            values,
          );
          await on.query("rollback to savepoint explained");
          const rows = nodesOf(row!["QUERY PLAN"][0]!.Plan)
            .filter((node) => node["Relation Name"] !== undefined)
            .map(
              (node) => node["Actual Loops"] * (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0)),
            );
          read.set(text, Math.max(read.get(text) ?? 0, ...rows));
        }
        return await on.query<Row>(text, values);
      },
    });
    const run = await aRun();
    await database.transaction(async (transaction) => {
      const inside: Database = {
        ...explaining(transaction as never),
        grouped: async (statement, source) => (await statement.query(inside, [source]))[0],
        transaction: (work) => work(inside as never),
      };
      const pushes = createPushes(inside);
      await pushes.set(taskOf(run), CONFIG, ALL_RIGHTS.threads, run.runId);
      await pushes.set(taskOf(run), { ...CONFIG, token: "x" }, ALL_RIGHTS.threads, run.runId);
      await pushes.list(taskOf(run));
      await endsOn(inside).finish(run, SUCCESS);
      const places = { receiver: 4, caller: 4 };
      const deliveries = createDeliveries(inside);
      const { held } = await deliveries.claim({
        limit: 4,
        places,
        underWay: [],
        own: true,
        leaseSeconds: 60,
      });
      await deliveries.readPush(held[0]!);
      await deliveries.failed(held[0]!, { status: 500, reason: "x", pauseSeconds: 0, forGood: false });
      await deliveries.handBack(held[0]!);
      await deliveries.delivered(held[0]!, 204);
      await pushes.remove(taskOf(run), CONFIG.id, ALL_RIGHTS.threads);
    });
    expect(read.size).toBe(10);
    for (const [text, rows] of read)
      expect([text, rows]).toEqual([text, expect.toSatisfy((n: number) => n < 30)]);
  });
});
