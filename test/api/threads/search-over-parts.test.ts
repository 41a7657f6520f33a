import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createSearcherOverParts } from "../../../src/api/threads/search/over-parts.ts";
import { cursorBehind, placeOf } from "../../../src/api/threads/search/order.ts";
import type { RowSearch } from "../../../src/api/threads/search/search.ts";
import { EVERY_LONG_PART } from "../../../src/api/threads/record.ts";
import { askParts, type Database } from "../../../src/platform/database/database.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";
import { EVERY_THREAD } from "../../helpers/access.ts";

/** Two databases, each with every second of seven threads, which are as a distributed database's parts. */
const THREADS = 7;
const idOf = (index: number): string => `00000000-0000-4000-8000-00000000000${index}`;

let fresh: FreshDatabase[];
let parts: Database[];
beforeAll(async () => {
  fresh = [await freshDatabase(), await freshDatabase()];
  parts = fresh.map(({ connectionString }) => openTestDatabase(connectionString));
  for (let index = 0; index < THREADS; index += 1) {
    partOfThread.set(idOf(index), index % 2);
    await parts[index % 2]!.query(
      `insert into threadloom.threads (thread_id, metadata, created_at, updated_at)
       values ($1, $2, timestamptz '2026-01-01' + $3 * interval '9 s', timestamptz '2026-01-01' - $3 * interval '9 s')`,
      [idOf(index), { team: index < 5 ? "a" : "b" }, index],
    );
  }
});
afterAll(async () => {
  await Promise.all(parts.map((part) => part.close()));
  await Promise.all(fresh.map((one) => one.drop()));
});

const search = (given: Partial<RowSearch>): RowSearch => ({
  ...{ metadata: undefined, status: undefined, ids: undefined, behind: undefined },
  ...{ sortBy: "created_at", sortOrder: "asc", parts: EVERY_LONG_PART, limit: 10, offset: 0 },
  ...given,
});
const PAGE_BYTES = 16_000;
const partOfThread = new Map<string, number>();
const partOf = (threadId: string): number => partOfThread.get(threadId) ?? 0;
const searcher = () => createSearcherOverParts({ ...parts[0]!, parts, partOf }, PAGE_BYTES);
const found = async (given: Partial<RowSearch>) => {
  const { rows, total, isLast } = await searcher().page(EVERY_THREAD, search(given));
  return { threads: rows.map((row) => Number(row.thread_id.slice(-1))), total, isLast };
};

describe("a search of threads in two parts", () => {
  test.each([
    [{ sortBy: "created_at", sortOrder: "asc" }, [0, 1, 2, 3, 4, 5, 6]],
    [{ sortBy: "created_at", sortOrder: "desc" }, [6, 5, 4, 3, 2, 1, 0]],
    [{ sortBy: "updated_at", sortOrder: "asc" }, [6, 5, 4, 3, 2, 1, 0]],
    [{ sortBy: "thread_id", sortOrder: "desc" }, [6, 5, 4, 3, 2, 1, 0]],
    [{ sortBy: "status", sortOrder: "asc" }, [0, 1, 2, 3, 4, 5, 6]],
  ] as const)("is in one order: %o", async (order, threads) => {
    expect(await found(order)).toEqual({ threads, total: THREADS, isLast: true });
  });

  test("goes from page to page, and finds each thread once", async () => {
    expect(await found({ limit: 3 })).toMatchObject({ threads: [0, 1, 2], isLast: false });
    expect(await found({ limit: 3, offset: 3 })).toMatchObject({ threads: [3, 4, 5], isLast: false });
    expect(await found({ limit: 3, offset: 6 })).toEqual({ threads: [6], total: THREADS, isLast: true });
    expect(await found({ limit: 3, offset: 9 })).toMatchObject({ threads: [], isLast: true });
  });

  test("filters and counts over both", async () => {
    const metadata = { team: "a" };
    expect(await found({ metadata, limit: 2 })).toEqual({ threads: [0, 1], total: 5, isLast: false });
    expect(await searcher().count(EVERY_THREAD, { metadata, status: undefined, ids: undefined })).toBe(5);
  });

  test("lists the candidates of both in order, unless there are too many", async () => {
    const candidates = await searcher().candidates(EVERY_THREAD, search({}), THREADS);
    expect(candidates?.map((row) => row.thread_id)).toEqual(
      Array.from({ length: THREADS }, (_, index) => idOf(index)),
    );
    expect(await searcher().candidates(EVERY_THREAD, search({}), THREADS - 1)).toBeUndefined();
  });

  test("reads records in the order of the ids", async () => {
    const ids = [idOf(5), idOf(0), idOf(3)];
    const rows = await searcher().records(EVERY_THREAD, ids, EVERY_LONG_PART);
    expect(rows.map((row) => row.thread_id)).toEqual(ids);
  });
});

describe("a search of large threads in two parts", () => {
  const LARGE = { team: "large" };
  const ids = Array.from({ length: 6 }, (_, index) => `00000000-0000-4000-8001-00000000000${index}`);
  beforeAll(async () => {
    for (const [index, threadId] of ids.entries()) {
      partOfThread.set(threadId, index < 4 ? 0 : 1);
      await parts[partOf(threadId)]!.query(
        `insert into threadloom.threads (thread_id, metadata, created_at)
         values ($1, $2::jsonb || jsonb_build_object('text', repeat('x', 6000)), timestamptz '2027-01-01' + $3 * interval '9 s')`,
        [threadId, LARGE, index],
      );
    }
  });
  afterAll(async () => {
    for (const part of parts)
      await part.query("delete from threadloom.threads where thread_id = any($1::uuid[])", [ids]);
  });

  test("reads as many records as both parts have room for, and leaves none out between them", async () => {
    const rows = await searcher().records(EVERY_THREAD, ids, EVERY_LONG_PART);
    expect(rows.map((row) => row.thread_id)).toEqual(ids.slice(0, 2));
  });

  test("refuses a far offset, because each part would send the threads before it", async () => {
    await expect(found({ offset: 9_995 })).rejects.toThrow("go on with 'cursor' instead");
    expect(await found({ offset: 9_990 })).toMatchObject({ threads: [] });
  });

  test("goes on behind a page that ended early", async () => {
    const order = { sortBy: "created_at", sortOrder: "asc" } as const;
    const { places } = await searcher().page(EVERY_THREAD, search({ metadata: LARGE, ...order }));
    const behind = placeOf(order, cursorBehind(order, places[1]!));
    expect(await found({ metadata: LARGE, behind })).toMatchObject({ threads: [2, 3, 4, 5], isLast: true });
  });

  test("ends a page early, and goes on with the next thread", async () => {
    const pages: Awaited<ReturnType<typeof found>>[] = [];
    for (let offset = 0; offset < ids.length && pages.length < ids.length;) {
      pages.push(await found({ metadata: LARGE, offset }));
      offset += pages.at(-1)!.threads.length;
    }
    expect(pages).toEqual([
      { threads: [0, 1], total: 6, isLast: false },
      { threads: [2, 3, 4, 5], total: 6, isLast: true },
    ]);
  });
});

describe("of nodes that are asked for their parts", () => {
  const AWAY = Object.assign(new Error("The node is away."), { code: "ECONNREFUSED" });
  const asked = (failing: number, error: Error) =>
    askParts({ ...parts[0]!, parts, partsByNode: () => parts.map((part) => [part]) }, (part) =>
      parts.indexOf(part) < failing ? Promise.reject(error) : Promise.resolve(parts.indexOf(part)),
    );

  test("one that is away is left out", async () => {
    expect(await asked(1, AWAY)).toEqual([1]);
  });

  test("none answers, which is a failure", async () => {
    await expect(asked(2, AWAY)).rejects.toThrow("The node is away.");
  });

  test("a fault that does not pass is thrown, although another node answers", async () => {
    await expect(asked(1, new Error("This is a fault of ours."))).rejects.toThrow("a fault of ours");
  });
});
