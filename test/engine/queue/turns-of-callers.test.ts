import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { createQueue, type Queue } from "../../../src/engine/queue/queue.ts";
import { openQueue, type OpenQueue } from "./open-queue.ts";

/** Claims take turns between callers, and between graphs. */

let opened: OpenQueue;
let database: Database;
let queue: Queue;
beforeAll(async () => {
  opened = await openQueue();
  ({ database, queue } = opened);
});
afterAll(() => opened.close());
beforeEach(() => database.query("delete from threadloom.threads"));

/** The chance that a waiting run misses this many turns is below 1 in 10^20 runs of the test. */
const TURNS = 200;

const fill = async (
  runs: number,
  {
    caller,
    graph = "test",
    afterSeconds = 0,
  }: { caller: string | null; graph?: string; afterSeconds?: number },
) => {
  await database.query(
    `with thread as (
      insert into threadloom.threads (thread_id, unfinished_runs, turns)
      select gen_random_uuid(), 1, 1 from generate_series(1, $1) returning thread_id)
    insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, caller, created_at,
      available_at)
    select gen_random_uuid(), thread_id, gen_random_uuid(), $2, 'pending', '{}', 'enqueue', $3,
      now() - make_interval(secs => $4), now() from thread`,
    [runs, graph, caller, afterSeconds],
  );
};
const callersOf = async (runIds: readonly string[]): Promise<string[]> =>
  (
    await database.query<{ name: string }>(
      "select coalesce(caller, 'nobody') || ' ' || graph_id as name from threadloom.runs where run_id = any($1::uuid[])",
      [runIds],
    )
  ).map(({ name }) => name);
const claimed = async (limit: number, from = queue): Promise<string[]> =>
  await callersOf((await from.claim(newId(), 10, limit)).map((run) => run.run_id));

test("a caller with many runs does not delay others, nor does a graph, nor do runs without a caller", async () => {
  await fill(900, { caller: "user:many" });
  await fill(1, { caller: "user:one" });
  await fill(1, { caller: "user:many", graph: "second" });
  await fill(1, { caller: null });
  await fill(1, { caller: "user:later", afterSeconds: 5 });
  const begun = new Set<string>();
  for (let turn = 0; turn < TURNS && begun.size < 5; turn += 1)
    for (const name of await claimed(1)) begun.add(name);
  expect([...begun].sort()).toEqual([
    "nobody test",
    "user:later test",
    "user:many second",
    "user:many test",
    "user:one test",
  ]);
});

test("one claim of several runs gives each caller a first turn before any second one", async () => {
  for (const caller of ["user:a", "user:b", "user:c"]) await fill(20, { caller });
  expect((await claimed(3)).sort()).toEqual(["user:a test", "user:b test", "user:c test"]);
  expect((await claimed(6)).sort()).toEqual(
    ["a", "a", "b", "b", "c", "c"].map((name) => `user:${name} test`),
  );
});

test("if there are more callers than a claim reads, each still gets a turn", async () => {
  const callers = Array.from({ length: 40 }, (_, index) => `user:${index}`);
  await database.query(
    `with thread as (
      insert into threadloom.threads (thread_id, unfinished_runs, turns)
      select gen_random_uuid(), 1, 1 from generate_series(1, 2000) returning thread_id)
    insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, caller)
    select gen_random_uuid(), thread_id, gen_random_uuid(), 'test', 'pending', '{}', 'enqueue',
      'user:' || row_number() over () % 40 from thread`,
  );
  const begun = new Set<string>();
  for (let claims = 0; claims < 95 && begun.size < callers.length; claims += 1)
    for (const name of await claimed(20)) begun.add(name);
  expect(begun.size).toBe(callers.length);
});

test("slots are filled from a single caller if no other waits", async () => {
  await fill(30, { caller: "user:many" });
  expect(await claimed(20)).toHaveLength(20);
  expect(await claimed(20)).toHaveLength(10);
});

test("graphs without a startable run do not delay others, however many they are", async () => {
  const graphIds = Array.from({ length: 30 }, (_, index) => `later ${index}`);
  for (const graph of graphIds) {
    await fill(1, { caller: null, graph });
    await database.query(
      "update threadloom.runs set available_at = now() + interval '1 hour' where graph_id = $1",
      [graph],
    );
  }
  await fill(1, { caller: "user:one", graph: "now" });
  const hosting = createQueue(database, { maxAttempts: 3, graphIds: [...graphIds, "now"] });
  expect(await claimed(1, hosting)).toEqual(["user:one now"]);
});
