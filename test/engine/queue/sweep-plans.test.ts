import { afterAll, beforeAll, expect, test } from "vitest";
import { createAssistantRepository } from "../../../src/api/assistants/repository.ts";
import type { Database, Queryable } from "../../../src/platform/database/database.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { createQueue, type Queue } from "../../../src/engine/queue/queue.ts";
import { EVERY_THREAD } from "../../helpers/access.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

/* The blocks read by the statements that every server repeats, with statistics from a time when all runs had ended. */

const RUNS = 5_000;
/** Most of these statements read fewer than ten. Reading all runs, or all waiting ones, takes more. */
const FEW_BLOCKS = 60;

let fresh: FreshDatabase;
let database: Database;
let threadId: string;
beforeAll(async () => {
  fresh = await freshDatabase();
  database = openTestDatabase(fresh.connectionString);
  for (const table of ["runs", "threads", "workers"])
    await database.query(`alter table threadloom.${table} set (autovacuum_enabled = false)`);
  const fill = (status: string, behind: boolean) =>
    database.query(
      `with thread as (
        insert into threadloom.threads (thread_id, metadata)
        select gen_random_uuid(), jsonb_build_object('assistant_id', gen_random_uuid()) from generate_series(1, ${RUNS}) returning thread_id)
      insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, behind)
      select gen_random_uuid(), thread_id, gen_random_uuid(), 'agent', $1, '{}', 'enqueue', $2 from thread`,
      [status, behind],
    );
  await fill("success", false);
  await database.query("vacuum analyze");
  await fill("pending", false);
  const [row] = await database.query<{ thread_id: string }>("select thread_id from threadloom.runs limit 1");
  threadId = row?.thread_id ?? "";
});
afterAll(async () => {
  await database.close();
  await fresh.drop();
});

interface Plan {
  "Shared Hit Blocks": number;
  "Shared Read Blocks": number;
}

/** The blocks that the statements in `work` read; they change nothing. */
const blocksOf = async (work: (explaining: Database) => Promise<unknown>): Promise<number> => {
  let blocks = 0;
  const explain = async (queryable: Queryable, text: string, values: unknown[] = []) => {
    const rows = await queryable.query<{ "QUERY PLAN": { Plan: Plan }[] }>(
      `explain (analyze, buffers, format json) ${text}`,
      values,
    );
    const plan = rows[0]?.["QUERY PLAN"][0]?.Plan;
    if (plan === undefined) throw new Error("No plan.");
    blocks += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
  };
  const over = (queryable: Queryable) => ({
    async query<Row>(text: string, values?: unknown[]): Promise<Row[]> {
      await explain(queryable, text, values);
      return [];
    },
    async execute(text: string, values?: unknown[]) {
      await explain(queryable, text, values);
      return { rows: [], rowCount: 0 };
    },
  });
  await work({
    ...database,
    ...over(database),
    transaction: (inTransaction, opening) =>
      database.transaction((transaction) => inTransaction({ ...transaction, ...over(transaction) }), opening),
  });
  return blocks;
};

const STATEMENTS: [string, (queue: Queue) => Promise<unknown>][] = [
  ["finds out whether something waits", (queue) => queue.findWaiting()],
  ["finds out whether something has to be recovered", (queue) => queue.findToRecover(10)],
  ["looks for the runs of dead servers that may not be tried again", (queue) => queue.listAbandoned(10)],
  ["looks for the runs of dead servers that may be tried again", (queue) => queue.requeueLost(10)],
  ["looks for forgotten runs behind others", (queue) => queue.advanceForgotten()],
  ["looks for scheduled runs that are in the way", (queue) => queue.putBehind()],
  ["lets the next run of a thread start", (queue) => queue.advance(threadId)],
];
test.each(STATEMENTS)("%s without reading ended or waiting runs", async (_, ask) => {
  const asking = (explaining: Database) =>
    ask(createQueue(explaining, { maxAttempts: 3, graphIds: ["agent"] }));
  // The first reader of an index entry may have to check whether its row is dead.
  await blocksOf(asking);
  expect(await blocksOf(asking)).toBeLessThan(FEW_BLOCKS);
});

test("finds the threads of an assistant by the index of metadata", async () => {
  const read = await blocksOf((explaining) =>
    createAssistantRepository(explaining).threadsOf(EVERY_THREAD, newId(), undefined, 200),
  );
  expect(read).toBeLessThan(FEW_BLOCKS);
});
