import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { grantVisibility, type Visibility } from "../../../src/access/visibility.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { createRunEnds } from "../../../src/engine/queue/ending.ts";
import { createCancellation } from "../../../src/api/runs/cancellation/cancellation.ts";
import { EVERY_THREAD } from "../../helpers/access.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

/* The blocks that cancelling all own runs reads, as PostgreSQL counts them, do not depend on the machine. */

/** Other users' threads with a waiting run each. For a caller who sees more threads than this, a different query is used. */
const WAITING = 24_000;
const IDLE = 300;
/** Reading the waiting runs takes more than `WAITING`, because each run's thread is checked. */
const FEW_BLOCKS = 1_000;

let fresh: FreshDatabase;
let database: Database;
let ownThread: string;
beforeAll(async () => {
  fresh = await freshDatabase();
  database = openTestDatabase(fresh.connectionString);
  for (const table of ["runs", "threads"])
    await database.query(`alter table threadloom.${table} set (autovacuum_enabled = false)`);
  await database.query(
    `insert into threadloom.threads (thread_id, metadata)
     select gen_random_uuid(), '{"owner": "idle"}' from generate_series(1, $1)`,
    [IDLE],
  );
  await database.query(
    `with thread as (
       insert into threadloom.threads (thread_id, metadata, status, unfinished_runs)
       select gen_random_uuid(), jsonb_build_object('owner', 'user-' || n % 500, 'team', 'all'), 'busy', 1
       from generate_series(1, $1) n returning thread_id)
     insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy)
     select gen_random_uuid(), thread_id, gen_random_uuid(), 'none', 'pending', '{}', 'enqueue' from thread`,
    [WAITING],
  );
  ownThread = newId();
  await database.query(
    `insert into threadloom.threads (thread_id, metadata, status, unfinished_runs) values ($1, '{"owner": "me"}', 'busy', 3)`,
    [ownThread],
  );
  await database.query(
    `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, behind)
     select gen_random_uuid(), $1, gen_random_uuid(), 'none', case n when 1 then 'running' else 'pending' end, '{}', 'enqueue', n > 1
     from generate_series(1, 3) n`,
    [ownThread],
  );
  await database.query("vacuum analyze");
});
afterAll(async () => {
  await database.close();
  await fresh.drop();
});

const sees = (metadata: Record<string, string>): Visibility<"threads"> =>
  grantVisibility(
    "threads",
    (column, parameter) => `${column} @> ${parameter(JSON.stringify(metadata))}::jsonb`,
  );

const NONE = async (): Promise<void> => {
  throw new Error("They have no checkpoints.");
};
const cancelMany = (visibility: Visibility<"threads">, filter: { status: "all" | "pending" | "running" }) =>
  createCancellation({
    database,
    announcements: { stop: () => undefined, ended: () => undefined, available: () => undefined },
    ends: createRunEnds(database, { deleteRun: NONE, deleteThread: NONE }),
  }).cancelMany(visibility, filter, "interrupt");

/** Of the tables of runs and threads and of their indexes, by all statements of this connection so far. */
const blocksSoFar = async (): Promise<number> => {
  await database.query("select pg_stat_force_next_flush()");
  const [row] = await database.query<{ blocks: string }>(
    `select sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read) as blocks
     from pg_statio_all_tables where relid in ('threadloom.threads'::regclass, 'threadloom.runs'::regclass)`,
  );
  return Number(row?.blocks);
};
const blocksOf = async (work: () => Promise<unknown>): Promise<number> => {
  const before = await blocksSoFar();
  await work();
  return (await blocksSoFar()) - before;
};
const pending = async (): Promise<number> => {
  const [row] = await database.query<{ count: number }>(
    "select count(*)::int as count from threadloom.runs where status = 'pending'",
  );
  return row?.count ?? 0;
};

describe("cancelling all own runs reads none of others", () => {
  test.each<["all" | "pending" | "running", string]>([
    ["all", "nobody"],
    ["pending", "nobody"],
    ["running", "nobody"],
    ["all", "idle"],
    ["pending", "idle"],
  ])("'%s' of a user with no runs: %s", async (status, owner) => {
    const blocks = await blocksOf(async () => {
      expect(await cancelMany(sees({ owner }), { status })).toBe(0);
    });
    expect(blocks).toBeLessThan(FEW_BLOCKS);
  });

  test("of a user with some, and cancels only those", async () => {
    const blocks = await blocksOf(async () => {
      expect(await cancelMany(sees({ owner: "me" }), { status: "all" })).toBe(3);
    });
    expect(blocks).toBeLessThan(FEW_BLOCKS);
    expect(await pending()).toBe(WAITING);
    const runs = await database.query(
      "select status, cancel_action from threadloom.runs where thread_id = $1 order by 1",
      [ownThread],
    );
    expect(runs).toEqual([
      { status: "interrupted", cancel_action: null },
      { status: "interrupted", cancel_action: null },
      { status: "running", cancel_action: "interrupt" },
    ]);
  });

  test("'running' of a caller who sees everything", async () => {
    const blocks = await blocksOf(() => cancelMany(EVERY_THREAD, { status: "running" }));
    expect(blocks).toBeLessThan(FEW_BLOCKS);
  });
});

test("for a user who sees most threads all runs are found by reading the unfinished ones in pages", async () => {
  const pages: number[] = [];
  const listening: Database = {
    ...database,
    async query<Row>(text: string, values?: unknown[]): Promise<Row[]> {
      const rows = await database.query<Row>(text, values);
      pages.push(rows.length);
      return rows;
    },
  };
  const cancellation = createCancellation({
    database: listening,
    announcements: { stop: () => undefined, ended: () => undefined, available: () => undefined },
    ends: { cancelWaiting: async () => [] },
  });
  expect(await cancellation.cancelMany(sees({ team: "all" }), { status: "all" }, "interrupt")).toBe(WAITING);
  expect(Math.max(...pages)).toBe(500);
});
