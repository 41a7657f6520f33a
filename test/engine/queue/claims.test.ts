import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import { createQueue } from "../../../src/engine/queue/queue.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

/*
 * The blocks that a claim reads, as PostgreSQL counts them, do not depend on the machine. The tables have no statistics, as after an import
 * or a burst.
 */

/** A claim of ten from a queue without other runs reads some 250. */
const BLOCKS_AT_MOST = 1_000;
const WAITING = 5_000;
const SLOTS = 10;
const WAIT = { timeout: 60_000, interval: 100 };

let fresh: FreshDatabase;
let database: Database;
beforeAll(async () => {
  fresh = await freshDatabase();
  database = openTestDatabase(fresh.connectionString, { poolSize: 2 });
});
afterAll(async () => {
  await database.close();
  await fresh.drop();
});
// Not `delete`, which leaves dead rows in the indexes.
beforeEach(() => database.query("truncate threadloom.threads cascade"));

interface Plan {
  Plan: { "Shared Hit Blocks": number; "Shared Read Blocks": number; "Actual Rows": number };
}

/** The reads of a worker's claim; it claims none. */
const readByClaim = async (): Promise<{ blocks: number; runs: number }> => {
  let plan: Plan | undefined;
  const explaining: Pick<Database, "query"> = {
    async query<Row>(text: string, values: unknown[] = []): Promise<Row[]> {
      await database
        .transaction(async (transaction) => {
          const [row] = await transaction.query<{ "QUERY PLAN": Plan[] }>(
            `explain (analyze, buffers, format json) ${text}`,
            values,
          );
          plan = row?.["QUERY PLAN"][0];
          throw new Error("rolled back");
        })
        .catch((error: Error) => {
          if (error.message !== "rolled back") throw error;
        });
      return [];
    },
  };
  const claims = createQueue(
    { ...database, ...explaining },
    { maxAttempts: 3, graphIds: ["agent", "other"] },
  );
  await claims.claim(newId(), 10, SLOTS);
  const top = plan?.Plan;
  if (top === undefined) throw new Error("No plan.");
  return { blocks: top["Shared Hit Blocks"] + top["Shared Read Blocks"], runs: top["Actual Rows"] };
};

const INSERT = `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, behind,
    available_at)
  select gen_random_uuid(), thread_id, gen_random_uuid(), coalesce($2, 'agent'), $1, '{}', 'enqueue', $3,
    now() + make_interval(secs => $4)`;

const aThread = async (): Promise<string> => {
  const threadId = newId();
  await database.query("insert into threadloom.threads (thread_id) values ($1)", [threadId]);
  return threadId;
};
const manyThreads = (count: number) =>
  database.query(
    "insert into threadloom.threads (thread_id) select gen_random_uuid() from generate_series(1, $1)",
    [count],
  );

const BACKLOGS: [string, () => Promise<unknown>][] = [
  [
    "behind one thread that runs",
    async () => {
      const threadId = await aThread();
      const one = `${INSERT} from threadloom.threads where thread_id = $5`;
      await database.query(one, ["running", null, false, 0, threadId]);
      await database.query(`${INSERT} from threadloom.threads, generate_series(1, $6) where thread_id = $5`, [
        "pending",
        null,
        true,
        0,
        threadId,
        WAITING,
      ]);
    },
  ],
  [
    "for a time to come",
    async () => {
      await manyThreads(WAITING);
      await database.query(`${INSERT} from threadloom.threads`, ["pending", null, false, 3_600]);
    },
  ],
  [
    "for a worker that hosts their graph",
    async () => {
      await manyThreads(WAITING);
      await database.query(`${INSERT} from threadloom.threads`, ["pending", "elsewhere", false, 0]);
    },
  ],
  [
    "for a slot",
    async () => {
      await manyThreads(WAITING);
      await database.query(`${INSERT} from threadloom.threads`, ["pending", null, false, 0]);
    },
  ],
];

test.each(BACKLOGS)(`a claim reads no more when ${WAITING} runs wait %s`, async (_, fill) => {
  await fill();
  const older = await readByClaim();
  const threadId = await aThread();
  await database.query(`${INSERT} from threadloom.threads where thread_id = $5`, [
    "pending",
    null,
    false,
    0,
    threadId,
  ]);
  const { blocks, runs } = await readByClaim();
  expect(runs).toBe(Math.min(older.runs + 1, SLOTS));
  expect(blocks).toBeLessThan(BLOCKS_AT_MOST);
});

test("scheduled runs that are due behind a running thread are set aside, and start in their turn", async () => {
  const threadId = await aThread();
  const one = `${INSERT} from threadloom.threads where thread_id = $5`;
  await database.query(one, ["running", null, false, 0, threadId]);
  await database.query(`${INSERT} from threadloom.threads, generate_series(1, $6) where thread_id = $5`, [
    "pending",
    null,
    false,
    3_600,
    threadId,
    WAITING,
  ]);
  await database.query(
    "update threadloom.runs set created_at = created_at - interval '2 hours', available_at = available_at - interval '2 hours'",
  );
  const claims = createQueue(database, { maxAttempts: 3, graphIds: ["agent"] });
  const countInTheWay = async () => {
    const [row] = await database.query<{ runs: number }>(
      "select count(*)::int as runs from threadloom.runs where status = 'pending' and not behind",
    );
    return row?.runs;
  };
  for (let looks = 0; looks < 3; looks += 1) await claims.putBehind();
  expect(await countInTheWay()).toBe(0);
  // Claims skip dead index entries only when no transaction, such as autovacuum's, may still read them.
  await vi.waitFor(async () => expect((await readByClaim()).blocks).toBeLessThan(BLOCKS_AT_MOST), WAIT);

  await database.query("update threadloom.runs set status = 'success' where status = 'running'");
  const [oldest] = await database.query<{ run_id: string; thread_id: string }>(
    "select run_id, thread_id from threadloom.runs where status = 'pending' order by created_at, run_id limit 1",
  );
  expect(await claims.advanceForgotten()).toEqual([{ threadId: oldest?.thread_id, runId: oldest?.run_id }]);
  await claims.putBehind();
  const [claimed] = await claims.claim(newId(), 10, SLOTS);
  expect(claimed?.run_id).toBe(oldest?.run_id);
});
