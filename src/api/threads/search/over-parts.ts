import { partsOf, type Database } from "../../../platform/database/database.ts";
import { invalid } from "../../../platform/domain/errors.ts";
import type { PlaceColumn, RowOrder } from "./order.ts";
import { createThreadSearcher, type RowPage, type ThreadSearcher } from "./search.ts";

type Placed = PlaceColumn & { thread_id: string };

const compareKeys = (one: string, other: string): number => {
  // Microseconds have no leading zeros.
  const [first, second] = /^\d+$/.test(one) ? [one.padStart(20, "0"), other.padStart(20, "0")] : [one, other];
  return first < second ? -1 : first > second ? 1 : 0;
};

const comparing = ({ sortOrder }: Pick<RowOrder, "sortOrder">) => {
  const sign = sortOrder === "asc" ? 1 : -1;
  return (one: Placed, other: Placed): number => {
    for (const [index, key] of one.place.entries()) {
      const compared = compareKeys(key, other.place[index]!);
      if (compared !== 0) return sign * compared;
    }
    return sign * compareKeys(one.thread_id, other.thread_id);
  };
};

/** Undefined if one is. */
const sumOf = (counts: readonly (number | undefined)[]): number | undefined =>
  counts.reduce<number | undefined>(
    (sum, count) => (sum === undefined || count === undefined ? undefined : sum + count),
    0,
  );

/** A part that has more rows may have some before the later rows of other parts. */
const mergedPages = (pages: readonly RowPage[], order: RowOrder): Omit<RowPage, "total"> => {
  const compare = comparing(order);
  const ends = pages.filter(({ isLast }) => !isLast).map(({ rows }) => rows.at(-1));
  const rows = pages.flatMap((page) => page.rows).sort(compare);
  const isSafe = (row: Placed): boolean => ends.every((end) => end !== undefined && compare(row, end) <= 0);
  const unsafe = rows.findIndex((row) => !isSafe(row));
  return { rows: unsafe === -1 ? rows : rows.slice(0, unsafe), isLast: ends.length === 0 };
};

/** Searches each part of the database, and merges what is found. */
export const createSearcherOverParts = (database: Database): ThreadSearcher => {
  const searchers = partsOf(database).map(createThreadSearcher);
  if (searchers.length === 1) return searchers[0]!;
  return {
    async page(visibility, search, signal) {
      const { offset, limit } = search;
      const whole = { ...search, offset: 0, limit: offset + limit };
      const pages = await Promise.all(searchers.map(({ page }) => page(visibility, whole, signal)));
      const { rows, isLast } = mergedPages(pages, search);
      if (rows.length <= offset && !isLast)
        throw invalid("The rows before this offset are too large; go on with 'cursor' instead.");
      return {
        rows: rows.slice(offset, offset + limit),
        total: sumOf(pages.map(({ total }) => total)),
        isLast: isLast && rows.length <= offset + limit,
      };
    },

    async count(visibility, filter, signal) {
      const counts = await Promise.all(searchers.map(({ count }) => count(visibility, filter, signal)));
      return sumOf(counts)!;
    },

    async candidates(visibility, filter, limit, signal) {
      const found = await Promise.all(
        searchers.map(({ candidates }) => candidates(visibility, filter, limit, signal)),
      );
      const all = found.flatMap((some) => some ?? []);
      if (all.length > limit || found.includes(undefined)) return undefined;
      return all.sort(comparing(filter));
    },

    async records(visibility, ids, parts, signal) {
      const found = await Promise.all(
        searchers.map(({ records }) => records(visibility, ids, parts, signal)),
      );
      const byId = new Map(found.flat().map((row) => [row.thread_id, row]));
      return ids.flatMap((id) => byId.get(id) ?? []);
    },
  };
};
