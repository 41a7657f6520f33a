import { afterAll, beforeAll, expect, test } from "vitest";
import { ANONYMOUS } from "../../../src/access/caller.ts";
import { createTasks } from "../../../src/protocols/calls/tasks.ts";
import { EVERY_THREAD } from "../../helpers/access.ts";
import { explainingDatabase } from "../../helpers/explaining.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

/* The blocks that finding a task reads, beside many threads and many runs of its own thread. */

const THREADS = 20_000;
const RUNS_OF_THREAD = 5_000;
const FEW_BLOCKS = 40;
const THREAD = "00000000-0000-7000-8000-00000000000a";

let fresh: FreshDatabase;
let newest: string;
beforeAll(async () => {
  fresh = await freshDatabase();
  const database = openTestDatabase(fresh.connectionString);
  const runs = `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy)`;
  await database.query(
    `with thread as (insert into threadloom.threads (thread_id) select gen_random_uuid() from generate_series(1, $1) returning thread_id)
     ${runs} select gen_random_uuid(), thread_id, gen_random_uuid(), 'test', 'success', '{}', 'enqueue' from thread`,
    [THREADS],
  );
  await database.query("insert into threadloom.threads (thread_id) values ($1)", [THREAD]);
  await database.query(
    `${runs} select gen_random_uuid(), $1, gen_random_uuid(), 'test', 'success', '{}', 'enqueue' from generate_series(1, $2)`,
    [THREAD, RUNS_OF_THREAD],
  );
  const [row] = await database.query<{ run_id: string }>(
    "select run_id from threadloom.runs where thread_id = $1 order by created_at desc limit 1",
    [THREAD],
  );
  newest = row!.run_id;
  await database.query("vacuum analyze");
  await database.close();
});
afterAll(() => fresh.drop());

test("the newest task of a thread with 5,000 runs is found in few blocks", async () => {
  const database = openTestDatabase(fresh.connectionString);
  const { explaining, blocks } = explainingDatabase(database);
  const tasks = createTasks((async () => EVERY_THREAD) as never, explaining);
  await expect(tasks.find(ANONYMOUS, `${THREAD}:${newest}`)).rejects.toThrow("no such task");
  const read = blocks();
  expect(read).toBeGreaterThan(0);
  expect(read).toBeLessThan(FEW_BLOCKS);
  await database.close();
});
