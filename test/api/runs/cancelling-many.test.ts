import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { createRunEnds } from "../../../src/engine/queue/ending.ts";
import { createCancellation } from "../../../src/api/runs/cancellation.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { EVERY_THREAD } from "../../helpers/access.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

/** The page size of the lookup. */
const PAGE = 500;
/** More than two batches. */
const WAITING = 1_200;

let fresh: FreshDatabase;
let database: Database;
let statements: number;
let threads: [string, string, string];
const ended: string[] = [];
const stopped: string[] = [];
beforeAll(async () => {
  fresh = await freshDatabase();
  database = openTestDatabase(fresh.connectionString, { poolSize: 2 });
});
afterAll(async () => {
  await database.close();
  await fresh.drop();
});

/** One running run on each thread; many waiting ones on the first, one on each other. */
beforeEach(async () => {
  threads = [newId(), newId(), newId()];
  const insert = `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, behind,
      attempt, worker_id, lease_until)
    select gen_random_uuid(), $1, gen_random_uuid(), 'none', $2, '{}', 'enqueue', $2 = 'pending',
      case when $2 = 'running' then 1 else 0 end, gen_random_uuid(), now() + interval '1 hour'
    from generate_series(1, $3)`;
  for (const threadId of threads) {
    const waiting = threadId === threads[0] ? WAITING : 1;
    await database.query(
      "insert into threadloom.threads (thread_id, status, unfinished_runs) values ($1, 'busy', $2)",
      [threadId, waiting + 1],
    );
    await database.query(insert, [threadId, "running", 1]);
    await database.query(insert, [threadId, "pending", waiting]);
  }
});
afterEach(async () => {
  ended.length = 0;
  stopped.length = 0;
  await database.query("delete from threadloom.threads");
});

const STATEMENTS_AT_MOST = 200;

const NONE = async (): Promise<void> => {
  throw new Error("They have no checkpoints.");
};
const cancellation = () => {
  statements = 0;
  const count = (): void => {
    statements += 1;
    if (statements > STATEMENTS_AT_MOST) throw new Error("It goes on and on.");
  };
  const counting: Database = {
    ...database,
    async query(text, values) {
      count();
      return await database.query(text, values);
    },
    transaction: (work) =>
      database.transaction((transaction) =>
        work({
          ...transaction,
          async query(text, values) {
            count();
            return await transaction.query(text, values);
          },
        }),
      ),
  };
  return createCancellation({
    database: counting,
    announcements: {
      stop: (run) => void stopped.push(run.run_id),
      ended: ({ run }) => void ended.push(run.run_id),
      available: () => undefined,
    },
    ends: createRunEnds(counting, { deleteRun: NONE, deleteThread: NONE }),
  });
};

const statuses = async (threadId: string): Promise<Record<string, number>> => {
  const rows = await database.query<{ status: string; count: number }>(
    `select case when cancel_action is null then status else 'to be cancelled' end as status, count(*)::int as count
     from threadloom.runs where thread_id = $1 group by 1`,
    [threadId],
  );
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
};
const threadRow = async (threadId: string) =>
  (
    await database.query("select status, unfinished_runs from threadloom.threads where thread_id = $1", [
      threadId,
    ])
  )[0];

describe("cancelling many runs at once", () => {
  test("ends those of one thread in a few statements, and leaves the other threads alone", async () => {
    expect(
      await cancellation().cancelMany(EVERY_THREAD, { status: "all", threadId: threads[0] }, "interrupt"),
    ).toBe(WAITING + 1);
    expect(await statuses(threads[0])).toEqual({ interrupted: WAITING, "to be cancelled": 1 });
    expect(await threadRow(threads[0])).toEqual({ status: "busy", unfinished_runs: 1 });
    expect(await statuses(threads[1])).toEqual({ running: 1, pending: 1 });
    expect([new Set(ended).size, stopped.length]).toEqual([WAITING, 1]);
    expect(statements).toBeLessThan(40);
  });

  test("ends those of all threads, and removes the rolled back ones", async () => {
    expect(await cancellation().cancelMany(EVERY_THREAD, { status: "pending" }, "rollback")).toBe(
      WAITING + 2,
    );
    for (const threadId of threads) {
      expect(await statuses(threadId)).toEqual({ running: 1 });
      expect(await threadRow(threadId)).toEqual({ status: "busy", unfinished_runs: 1 });
    }
    expect(statements).toBeLessThan(40);
  });

  test("asks all running ones to stop", async () => {
    expect(await cancellation().cancelMany(EVERY_THREAD, { status: "running" }, "interrupt")).toBe(3);
    for (const threadId of threads) expect(await statuses(threadId)).toMatchObject({ "to be cancelled": 1 });
    expect(stopped).toHaveLength(3);
  });

  test("asks each running one once, however many there are", async () => {
    const many = 2 * PAGE + 1;
    await database.query(
      `with made as (insert into threadloom.threads (thread_id, status, unfinished_runs)
         select gen_random_uuid(), 'busy', 1 from generate_series(1, $1) returning thread_id)
       insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, attempt)
       select gen_random_uuid(), thread_id, gen_random_uuid(), 'none', 'running', '{}', 'enqueue', 1 from made`,
      [many],
    );
    expect(await cancellation().cancelMany(EVERY_THREAD, { status: "running" }, "interrupt")).toBe(many + 3);
    expect([stopped.length, new Set(stopped).size]).toEqual([many + 3, many + 3]);
  });

  test.each(["pending", "running"] as const)("with named ids cancels the %s ones", async (status) => {
    const runs = await database.query<{ run_id: string; status: string }>(
      "select run_id, status from threadloom.runs where thread_id = $1",
      [threads[1]],
    );
    const runIds = runs.map((run) => run.run_id);
    expect(await cancellation().cancelMany(EVERY_THREAD, { status, runIds }, "interrupt")).toBe(1);
    expect([...ended, ...stopped]).toEqual(
      runs.filter((run) => run.status === status).map((run) => run.run_id),
    );
    expect(await statuses(threads[1])).toEqual(
      status === "pending" ? { running: 1, interrupted: 1 } : { "to be cancelled": 1, pending: 1 },
    );
    expect(await statuses(threads[2])).toEqual({ running: 1, pending: 1 });
  });

  test("lets the rest of a thread start when none of its runs is running", async () => {
    const threadId = threads[1];
    await database.query(
      "update threadloom.runs set status = 'pending', behind = false where thread_id = $1",
      [threadId],
    );
    const [first, second] = await database.query<{ run_id: string }>(
      "select run_id from threadloom.runs where thread_id = $1 order by created_at",
      [threadId],
    );
    await database.query("update threadloom.runs set behind = true where run_id = $1", [second?.run_id]);
    await cancellation().cancelMany(
      EVERY_THREAD,
      { status: "all", runIds: [first?.run_id ?? ""] },
      "interrupt",
    );
    const rows = await database.query("select status, behind from threadloom.runs where run_id = $1", [
      second?.run_id,
    ]);
    expect(rows).toEqual([{ status: "pending", behind: false }]);
  });
});
