import { PAGE_BYTES_AT_MOST } from "../../../platform/database/bounded-reads.ts";
import { partsOf, type Database } from "../../../platform/database/database.ts";
import { invalid } from "../../../platform/domain/errors.ts";
import type { LongParts } from "../record.ts";
import type { RowOrder } from "./order.ts";
import { createThreadSearcher, type Placed, type ThreadSearcher } from "./search.ts";

const ONLY_PLACES: LongParts = { shown: [], read: [] };
/** Each part sends so many, of some hundred bytes. */
const PLACES_AT_MOST = 10_000;

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

/**
 * Each part sends the places of all threads before the end of the page.
 * @param bytesAtMost of the records of a page
 */
export const createSearcherOverParts = (
  database: Database,
  bytesAtMost = PAGE_BYTES_AT_MOST,
): ThreadSearcher => {
  const { partOf } = database;
  const searchers = partsOf(database).map(createThreadSearcher);
  if (searchers.length === 1 || partOf === undefined) return searchers[0]!;
  const over: ThreadSearcher = {
    async page(visibility, search, signal) {
      const end = search.offset + search.limit;
      if (end > PLACES_AT_MOST)
        throw invalid(
          `Only the first ${PLACES_AT_MOST} threads have an 'offset'; go on with 'cursor' instead.`,
        );
      const whole = { ...search, parts: ONLY_PLACES, offset: 0, limit: end };
      const pages = await Promise.all(searchers.map(({ page }) => page(visibility, whole, signal)));
      const found = pages.flatMap((page) => page.places).sort(comparing(search));
      const places = found.slice(search.offset, end);
      const ids = places.map(({ thread_id }) => thread_id);
      const rows = await over.records(visibility, ids, search.parts, signal);
      return {
        rows,
        places,
        total: sumOf(pages.map(({ total }) => total)),
        isLast: pages.every((page) => page.isLast) && found.length <= end && rows.length === places.length,
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
      const asked = [...new Set(ids.map(partOf))];
      const share = Math.floor(bytesAtMost / asked.length);
      const found = await Promise.all(
        asked.map((part) => searchers[part]!.records(visibility, ids, longParts, signal, share)),
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
