import { afterAll, beforeAll, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { createQueue, type Queue } from "../../../src/engine/queue/queue.ts";
import { explainingDatabase } from "../../helpers/explaining.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

/* The blocks read to find the run that keeps a thread, beside many others of the thread. */

const ENDED = 20_000;
const WAITING = 2_000;
const OTHER_THREADS = 20_000;
/** Reading the ended or waiting runs of the thread takes hundreds. */
const FEW_BLOCKS = 80;

let fresh: FreshDatabase;
const threadId = newId();
beforeAll(async () => {
  fresh = await freshDatabase();
  const database = openTestDatabase(fresh.connectionString);
  const fill = (status: string, count: number, attempt: number, behind: boolean) =>
    database.query(
      `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, attempt, behind)
       select gen_random_uuid(), $1, gen_random_uuid(), 'test', $2, '{}', 'enqueue', $3, $4 from generate_series(1, $5)`,
      [threadId, status, attempt, behind, count],
    );
  await database.query("insert into threadloom.threads (thread_id) values ($1)", [threadId]);
  await fill("success", ENDED, 1, false);
  await fill("pending", WAITING, 0, true);
  await fill("pending", 1, 1, false);
  await database.query(
    `with thread as (
       insert into threadloom.threads (thread_id) select gen_random_uuid() from generate_series(1, $1) returning thread_id)
     insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, attempt)
     select gen_random_uuid(), thread_id, gen_random_uuid(), 'test', 'success', '{}', 'enqueue', 1 from thread`,
    [OTHER_THREADS],
  );
  await database.query("vacuum analyze");
  await database.close();
});
afterAll(() => fresh.drop());

const STATEMENTS: [string, (queue: Queue) => Promise<unknown>][] = [
  ["a claim", (queue) => queue.claim(newId(), 10, 10)],
  ["the end of a run", (queue) => queue.advance(threadId)],
  ["the search for forgotten runs", (queue) => queue.advanceForgotten()],
  ["the search for delayed runs in the way", (queue) => queue.putBehind()],
  ["the search for work to recover", (queue) => queue.findToRecover(10)],
  ["the search for lost runs", (queue) => queue.requeueLost(10)],
  ["the search for abandoned runs", (queue) => queue.listAbandoned(10)],
  ["the search for unknown runs", (queue) => queue.listUnknown(newId(), [])],
];
test("few blocks are read", async () => {
  const database = openTestDatabase(fresh.connectionString);
  const { explaining, blocks } = explainingDatabase(database);
  const queue = createQueue(explaining, { maxAttempts: 3, graphIds: ["test"] });
  const read: Record<string, number> = {};
  for (const [what, ask] of STATEMENTS) {
    // The first reader of an index entry may have to check whether its row is dead.
    await ask(queue);
    blocks();
    // A claim has started it.
    await database.query("update threadloom.runs set status = 'pending' where status = 'running'");
    await ask(queue);
    read[what] = blocks();
  }
  await database.close();
  const many = Object.entries(read).filter(([, count]) => count === 0 || count > FEW_BLOCKS);
  expect(many, JSON.stringify(read)).toEqual([]);
});
