import { PAGE_BYTES_AT_MOST } from "../../../platform/database/bounded-reads.ts";
import { partsOf, type Database } from "../../../platform/database/database.ts";
import type { LongParts } from "../record.ts";
import type { RowOrder } from "./order.ts";
import { createThreadSearcher, type Placed, type RowPage, type ThreadSearcher } from "./search.ts";

const ONLY_PLACES: LongParts = { shown: [], read: [] };

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
const mergedPlaces = (pages: readonly RowPage[], order: RowOrder): { places: Placed[]; isLast: boolean } => {
  const compare = comparing(order);
  const ends = pages.filter(({ isLast }) => !isLast).map(({ places }) => places.at(-1));
  const places = pages.flatMap((page) => page.places).sort(compare);
  const isSafe = (row: Placed): boolean => ends.every((end) => end !== undefined && compare(row, end) <= 0);
  const unsafe = places.findIndex((row) => !isSafe(row));
  return { places: unsafe === -1 ? places : places.slice(0, unsafe), isLast: ends.length === 0 };
};

/** Searches each part of the database, merges what is found, and then reads the records of a page. */
export const createSearcherOverParts = (
  database: Database,
  bytesAtMost = PAGE_BYTES_AT_MOST,
): ThreadSearcher => {
  const parts = partsOf(database);
  const bytesOfPart = Math.floor(bytesAtMost / parts.length);
  const searchers = parts.map((part) => createThreadSearcher(part, bytesOfPart));
  if (searchers.length === 1) return searchers[0]!;
  const over: ThreadSearcher = {
    async page(visibility, search, signal) {
      const { offset, limit } = search;
      const whole = { ...search, parts: ONLY_PLACES, offset: 0, limit: offset + limit };
      const pages = await Promise.all(searchers.map(({ page }) => page(visibility, whole, signal)));
      const found = mergedPlaces(pages, search);
      const places = found.places.slice(offset, offset + limit);
      const ids = places.map(({ thread_id }) => thread_id);
      const records = await over.records(visibility, ids, search.parts, signal);
      const placeOf = new Map(places.map(({ thread_id, place }) => [thread_id, place]));
      return {
        rows: records.map((row) => ({ ...row, place: placeOf.get(row.thread_id)! })),
        places,
        total: sumOf(pages.map(({ total }) => total)),
        isLast: found.isLast && found.places.length <= offset + limit && records.length === places.length,
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

    async records(visibility, ids, longParts, signal) {
      const found = await Promise.all(
        searchers.map(({ records }) => records(visibility, ids, longParts, signal)),
      );
      const byId = new Map(found.flat().map((row) => [row.thread_id, row]));
      const ends = found
        .filter((rows) => rows.length < Number(rows[0]?.page_rows ?? 0))
        .map((rows) => ids.indexOf(rows.at(-1)!.thread_id) + 1);
      return ids.slice(0, Math.min(ids.length, ...ends)).flatMap((id) => byId.get(id) ?? []);
    },
  };
  return over;
};
