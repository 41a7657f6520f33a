import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { grantVisibility } from "../../../src/access/visibility.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import {
  createThreadSearcher,
  cursorBehind,
  type RowPage,
  type RowSearch,
  type ThreadSearcher,
} from "../../../src/api/threads/search/search.ts";
import { EVERY_THREAD } from "../../helpers/access.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

/*
 * The blocks that a search reads, as PostgreSQL counts them, do not depend on the machine. The tables have statistics, and the settings are
 * PostgreSQL's defaults.
 */

const THREADS = 30_000;
const OWNERS = 500;
/** All threads fill some 1,000 blocks, and their index by creation has one entry for each thread. */
const BLOCKS_AT_MOST = 600;
/** A prepared statement may get another plan with its sixth execution. */
const SEARCHES = 8;

/** PostgreSQL's default settings: the server of the tests may have others. */
const withDefaults = (connectionString: string): string => {
  const url = new URL(connectionString);
  url.searchParams.set("options", "-c random_page_cost=4 -c jit=on");
  return url.href;
};

const A_PAGE: RowSearch = {
  metadata: undefined,
  status: undefined,
  limit: 10,
  offset: 0,
  sortBy: "created_at",
  sortOrder: "desc",
};
const OF_OWNER = grantVisibility(
  "threads",
  (metadata, parameter) => `${metadata} @> ${parameter('{"owner":"user-7"}')}::jsonb`,
);

describe("searches", () => {
  let fresh: FreshDatabase;
  let database: Database;
  let searcher: ThreadSearcher;
  beforeAll(async () => {
    fresh = await freshDatabase();
    database = openTestDatabase(withDefaults(fresh.connectionString));
    searcher = createThreadSearcher(database);
    await database.query(
      `insert into threadloom.threads (thread_id, metadata, status, created_at, updated_at, state_updated_at)
     select gen_random_uuid(), jsonb_build_object('graph_id', 'agent', 'owner', 'user-' || n % $2, 'old', n <= 300,
         'often', n % 100 = 0),
       case when n % 300 = 0 then 'interrupted' when n % 500 = 1 then 'error' else 'idle' end,
       at, at, at
     from generate_series(1, $1::int) n, lateral (select now() - make_interval(mins => $1 - n) as at) as times`,
      [THREADS, OWNERS],
    );
    // Reads of autovacuum would be counted, too.
    await database.query("alter table threadloom.threads set (autovacuum_enabled = false)");
    await database.query("analyze threadloom.threads");
    // Or the blocks of the insert would be reported during a test.
    await database.query("select pg_stat_force_next_flush()");
  });
  afterAll(async () => {
    await database.close();
    await fresh.drop();
  });

  /** Of the table of threads and its indexes, by all searches so far. One search at a time uses one connection of a kind. */
  const blocksSoFar = async (): Promise<number> => {
    await database.boundedRead("select pg_stat_force_next_flush()");
    const [row] = await database.query<{ blocks: string }>(
      `select heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read as blocks
     from pg_statio_all_tables where relid = 'threadloom.threads'::regclass`,
    );
    return Number(row?.blocks);
  };

  describe("a page of ten of many threads costs only the page, not all threads", () => {
    test.each<[string, Partial<RowSearch>, number | undefined, typeof EVERY_THREAD?]>([
      ["in the default order", {}, undefined],
      ["of one user, by metadata", { metadata: { owner: "user-7" } }, THREADS / OWNERS],
      ["of one user, by Auth", {}, THREADS / OWNERS, OF_OWNER],
      ["of few that are all old", { metadata: { old: true } }, 300],
      ["of metadata that one of a hundred threads has", { metadata: { often: true } }, THREADS / 100],
      ["of metadata that every thread has", { metadata: { graph_id: "agent" } }, undefined],
      ["by status, of one user", { sortBy: "status", metadata: { owner: "user-7" } }, THREADS / OWNERS],
      ["that were interrupted", { status: "interrupted" }, THREADS / 300],
      ["that are idle", { status: "idle" }, undefined],
      ["by the last update", { sortBy: "updated_at" }, undefined],
      ["by id", { sortBy: "thread_id" }, undefined],
    ])("%s", async (_, search, total, visibility = EVERY_THREAD) => {
      const before = await blocksSoFar();
      for (let round = 0; round < SEARCHES; round += 1) {
        const page = await searcher.page(visibility, { ...A_PAGE, ...search });
        expect([page.rows.length, page.total, page.isLast]).toEqual([10, total, false]);
      }
      const blocks = ((await blocksSoFar()) - before) / SEARCHES;
      expect(blocks).toBeLessThan(BLOCKS_AT_MOST);
    });
  });

  describe("a page of ten far behind the first costs no more with a cursor", () => {
    const DEPTH = 20_000;
    const idsOf = ({ rows }: RowPage): string[] => rows.map(({ thread_id: id }) => id);
    test.each<[string, Partial<RowSearch>, typeof EVERY_THREAD?]>([
      ["in the default order", {}],
      ["the oldest first", { sortOrder: "asc" }],
      ["of metadata that every thread has", { metadata: { graph_id: "agent" } }],
      ["of one user, by Auth", {}, OF_OWNER],
      ["that are idle", { status: "idle" }],
      ["by the last update", { sortBy: "updated_at" }],
      ["by the last change of the state", { sortBy: "state_updated_at", sortOrder: "asc" }],
      ["by id", { sortBy: "thread_id" }],
    ])("%s", async (_, given, visibility = EVERY_THREAD) => {
      const search = { ...A_PAGE, ...given };
      const depth = visibility === OF_OWNER ? 30 : DEPTH;
      const [last] = (await searcher.page(visibility, { ...search, limit: 1, offset: depth - 1 })).rows;
      const expected = await searcher.page(visibility, { ...search, offset: depth });
      const cursor = cursorBehind(search, last!);
      const before = await blocksSoFar();
      for (let round = 0; round < SEARCHES; round += 1) {
        const page = await searcher.page(visibility, { ...search, cursor });
        expect(idsOf(page)).toEqual(idsOf(expected));
      }
      const blocks = ((await blocksSoFar()) - before) / SEARCHES;
      expect(blocks).toBeLessThan(BLOCKS_AT_MOST);
    });
  });

  describe("if nearly all threads match, a page costs its own rows and no count", () => {
    const OF_ALL = grantVisibility(
      "threads",
      (metadata, parameter) => `${metadata} @> ${parameter('{"graph_id":"agent"}')}::jsonb`,
    );
    test.each<[string, Partial<RowSearch>, typeof EVERY_THREAD?]>([
      ["by metadata", { metadata: { graph_id: "agent" } }],
      ["by Auth", {}, OF_ALL],
      ["by metadata and the last update", { metadata: { graph_id: "agent" }, sortBy: "updated_at" }],
    ])("%s", async (_, search, visibility = EVERY_THREAD) => {
      const before = await blocksSoFar();
      for (let round = 0; round < SEARCHES; round += 1) {
        const page = await searcher.page(visibility, { ...A_PAGE, ...search });
        expect([page.rows.length, page.total, page.isLast]).toEqual([10, undefined, false]);
      }
      const blocks = ((await blocksSoFar()) - before) / SEARCHES;
      expect(blocks).toBeLessThan(60);
    });

    test("the last page contains the total", async () => {
      const search = { ...A_PAGE, metadata: { graph_id: "agent" }, offset: THREADS - 5 };
      const page = await searcher.page(EVERY_THREAD, search);
      expect([page.rows.length, page.total, page.isLast]).toEqual([5, THREADS, true]);
    });

    test("ids are read directly, whatever the statistics say of the filter beside them", async () => {
      const { rows } = await searcher.page(EVERY_THREAD, A_PAGE);
      const ids = rows.slice(0, 3).map(({ thread_id: id }) => id);
      const page = await searcher.page(EVERY_THREAD, { ...A_PAGE, metadata: { graph_id: "agent" }, ids });
      expect([page.rows.length, page.total, page.isLast]).toEqual([3, 3, true]);
    });
  });

  test("pages by status come in the order of the statuses, in each from the newest or the oldest on", async () => {
    const seen: string[] = [];
    for (const offset of [0, 80, 120, 29_990]) {
      const { rows } = await searcher.page(EVERY_THREAD, { ...A_PAGE, sortBy: "status", limit: 10, offset });
      seen.push(...new Set(rows.map(({ record }) => (JSON.parse(record) as { status: string }).status)));
    }
    expect(seen).toEqual(["interrupted", "interrupted", "idle", "error"]);
  });
});
