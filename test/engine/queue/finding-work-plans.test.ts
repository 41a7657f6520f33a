import { afterAll, beforeAll, expect, test } from "vitest";
import { createQueue } from "../../../src/engine/queue/queue.ts";
import { explainingDatabase } from "../../helpers/explaining.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

/* The blocks read by the two statements that an idle server repeats. */

const ENDED = 200_000;
/** Less than the time limit of a statement, also on a busy machine. */
const AT_ONCE = 10_000;
const DELAYED = 5_000;
/** Each of the lookups reads one to four. Reading all delayed runs takes more. */
const FEW_BLOCKS = 40;

let fresh: FreshDatabase;
beforeAll(async () => {
  fresh = await freshDatabase();
  const database = openTestDatabase(fresh.connectionString);
  const fill = (count: number, status: string, delayDays: number) =>
    database.query(
      `with thread as (
         insert into threadloom.threads (thread_id) select gen_random_uuid() from generate_series(1, $1) returning thread_id)
       insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, attempt,
         available_at)
       select gen_random_uuid(), thread_id, gen_random_uuid(), 'test', $2, '{}', 'enqueue',
         case when $2 = 'pending' then 0 else 1 end, now() + make_interval(days => $3) from thread`,
      [count, status, delayDays],
    );
  for (let ended = 0; ended < ENDED; ended += AT_ONCE) await fill(AT_ONCE, "success", 0);
  await fill(DELAYED, "pending", 1);
  await database.query("vacuum analyze");
  await database.close();
});
afterAll(() => fresh.drop());

test("both read few blocks beside 200,000 ended and 5,000 delayed runs", async () => {
  const database = openTestDatabase(fresh.connectionString);
  const { explaining, blocks } = explainingDatabase(database);
  const queue = createQueue(explaining, { maxAttempts: 3, graphIds: ["test", "second", "third"] });
  for (const find of [() => queue.findWaiting(), () => queue.findToRecover(10)]) {
    await find();
    const read = blocks();
    expect(read).toBeGreaterThan(0);
    expect(read).toBeLessThan(FEW_BLOCKS);
  }
  await database.close();
});
