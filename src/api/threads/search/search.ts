import { createHash } from "node:crypto";
import { sql, type RawBuilder } from "kysely";
import { LRUCache } from "lru-cache";
import { type Visibility, whereVisible } from "../../../access/visibility.ts";
import type { BoundedRead, PageColumns, PageWeight } from "../../../platform/database/bounded-reads.ts";
import { composedRead } from "../../../platform/database/queries.ts";
import type { Database } from "../../../platform/database/database.ts";
import {
  CANDIDATE_COLUMNS,
  openRecords,
  recordColumns,
  storedColumns,
  type LongParts,
  type ThreadRecordRow,
} from "../record.ts";
import { whereBehind, whereMatches, type OrderedFilter, type RowFilter } from "./conditions.ts";
import { COUNTED_AT_MOST } from "./estimate.ts";
import {
  isBehindWithin,
  orderBy,
  placeColumn,
  sortKeys,
  STATUSES,
  type PlaceColumn,
  type SortKey,
} from "./order.ts";

export type Placed = PlaceColumn & { thread_id: string };

export interface RowSearch extends OrderedFilter {
  /** Other long columns are neither measured nor read. */
  parts: LongParts;
  limit: number;
  offset: number;
}

export interface RowPage {
  /** Only the rows for which a page has room; see `roomyPage`. */
  rows: ThreadRecordRow[];
  /** As `rows`, but some may be deleted by now. */
  places: readonly Placed[];
  /** Undefined if too many match to count. Callers ignore it behind a cursor. */
  total: number | undefined;
  /** Whether no matching thread follows. */
  isLast: boolean;
}

export type Candidate = Pick<ThreadRecordRow, "thread_id" | "graph_id" | "untouched">;
export type PlacedCandidate = Candidate & PlaceColumn;

/**
 * Bounded reads (platform/database/bounded-reads.ts) reject with `invalid` after their time, and with the signal's
 * reason.
 */
export interface ThreadSearcher {
  page(visibility: Visibility<"threads">, search: RowSearch, signal?: AbortSignal): Promise<RowPage>;
  count(visibility: Visibility<"threads">, filter: RowFilter, signal?: AbortSignal): Promise<number>;
  /** All threads in order, without records. Undefined if there are more than `limit`. */
  candidates(
    visibility: Visibility<"threads">,
    filter: OrderedFilter,
    limit: number,
    signal?: AbortSignal,
  ): Promise<PlacedCandidate[] | undefined>;
  /**
   * In the order of the ids, as many as a page has room for, without deleted threads. */
  records(
    visibility: Visibility<"threads">,
    ids: readonly string[],
    parts: LongParts,
    signal?: AbortSignal,
  ): Promise<ThreadRecordRow[]>;
}

type RecordRow = ThreadRecordRow & PageColumns;

type PageRow = RecordRow & PlaceColumn;

/** Counting up to the bound takes five times as long as a page of so many threads. */
const MANY_REMEMBERED_MS = 60_000;
const MANY_REMEMBERED_AT_MOST = 10_000;

/** Clients choose the length of a filter. */
const keyOf = (visibility: Visibility<"threads">, { metadata, status }: RowFilter): string =>
  createHash("sha256")
    .update(JSON.stringify([metadata, status, visibility.on("metadata")]))
    .digest("base64");

/** `more`: SQL for further columns. */
const pageOf = (parts: LongParts, sortBy?: SortKey, more = ""): PageWeight => {
  const place = sortBy === undefined ? "" : `, ${placeColumn(sortBy)}`;
  return { columns: parts.read, sent: `${more}${recordColumns(parts)}${place}` };
};

const limitAndOffset = (limit: number, offset: number): RawBuilder<unknown> =>
  sql`limit ${limit}::bigint offset ${offset}::bigint`;

/** Indexes: threads_by_creation, _by_update, _by_state_update, threads_pkey. */
const inOrder = (
  database: Database,
  visibility: Visibility<"threads">,
  search: RowSearch,
): RawBuilder<unknown> => {
  const columns = sql.raw(storedColumns(search.parts));
  const { behind, limit, offset } = search;
  const page = (table: string): RawBuilder<unknown> =>
    sql`order by ${sql.raw(orderBy(search, table))} ${limitAndOffset(limit + 1, offset)}`;
  if (search.sortBy !== "status") {
    return sql`select ${columns} from threadloom.threads ${whereBehind(database, visibility, search)}
      ${page("threads")}`;
  }
  // Each status has its own index for the order within it.
  const statuses = STATUSES.filter((status) => search.status === undefined || search.status === status);
  const order = sql.raw(orderBy({ ...search, sortBy: "created_at" }));
  const parts = statuses.map((status) => {
    const isWithin = behind && isBehindWithin(status, search, behind);
    return sql`(select ${columns} from threadloom.threads
      ${whereMatches(database, visibility, { ...search, status }, isWithin)}
      order by ${order} limit ${limit + 1}::bigint + ${offset}::bigint)`;
  });
  return sql`select * from (${sql.join(parts, sql` union all `)}) placed ${page("placed")}`;
};

export const createThreadSearcher = (database: Database): ThreadSearcher => {
  /** Filters with too many matches to count. */
  const many = new LRUCache<string, true>({ max: MANY_REMEMBERED_AT_MOST, ttl: MANY_REMEMBERED_MS });

  const count: ThreadSearcher["count"] = async (visibility, filter, signal) => {
    const rows = await composedRead<{ total: string }>(
      database.boundedRead,
      sql`select count(*) as total from threadloom.threads ${whereMatches(database, visibility, filter)}`,
      { signal },
    );
    return Number(rows[0]?.total ?? 0);
  };

  const countSome = async (
    read: BoundedRead,
    visibility: Visibility<"threads">,
    filter: RowFilter,
  ): Promise<number | undefined> => {
    const [counted] = await composedRead<{ total: string }>(
      read,
      sql`select count(*) as total from (
        select from threadloom.threads ${whereMatches(database, visibility, filter)}
        limit ${sql.lit(COUNTED_AT_MOST + 1)}) matching`,
    );
    const total = Number(counted?.total ?? 0);
    return total > COUNTED_AT_MOST ? undefined : total;
  };

  /**
   * Sorts all matches of threads_by_metadata. Undefined if many match: then any index in the order finds a page soon.
   */
  const pageOfFew = async (
    read: BoundedRead,
    visibility: Visibility<"threads">,
    search: RowSearch,
  ): Promise<RowPage | undefined> => {
    const most = sql.lit(COUNTED_AT_MOST);
    const found = await composedRead<PageRow & { total: string }>(
      read,
      sql`with matching as materialized (
           select ${sql.raw(sortKeys(search.sortBy))} from threadloom.threads
           ${whereBehind(database, visibility, search)} limit ${most} + 1)
         select counted.total, record.*
           from (select count(*) as total from matching) counted
           left join lateral (
             select matching.* from matching where counted.total <= ${most}
              order by ${sql.raw(orderBy(search, "matching"))} ${limitAndOffset(search.limit, search.offset)}) page on true
           left join lateral (
             select ${sql.raw(storedColumns(search.parts))} from threadloom.threads
              where thread_id = page.thread_id) record on true
          order by ${sql.raw(orderBy(search, "page"))}`,
      { weight: pageOf(search.parts, search.sortBy, "total, ") },
    );
    const total = Number(found[0]?.total ?? 0);
    if (total > COUNTED_AT_MOST) return undefined;
    // An empty page has one row without a thread, for the total.
    const rows = openRecords(
      database,
      found.filter((row) => row.thread_id !== null),
    );
    return { rows, places: rows, total, isLast: search.offset + rows.length >= total };
  };

  /** Reads one row more, to learn whether the page is the last. */
  const orderedPage = async (
    read: BoundedRead,
    visibility: Visibility<"threads">,
    search: RowSearch,
    isTooManyToCount: boolean,
  ): Promise<RowPage> => {
    const found = await composedRead<PageRow>(read, inOrder(database, visibility, search), {
      weight: pageOf(search.parts, search.sortBy),
    });
    const rows = openRecords(database, found.slice(0, search.limit));
    const isLast = Number(found[0]?.page_rows ?? 0) <= rows.length;
    if (isLast && (rows.length > 0 || search.offset === 0))
      return { rows, places: rows, total: search.offset + rows.length, isLast };
    // Pages behind a cursor have no total.
    const isUncounted = isTooManyToCount || search.behind !== undefined;
    const total = isUncounted ? undefined : await countSome(read, visibility, search);
    return { rows, places: rows, total, isLast };
  };

  return {
    page(visibility, search, signal) {
      const isFiltered =
        !visibility.hidesNothing ||
        search.ids !== undefined ||
        (search.metadata !== undefined && Object.keys(search.metadata).length > 0);
      return database.boundedReads(async (read) => {
        const key = isFiltered && search.ids === undefined ? keyOf(visibility, search) : undefined;
        if (isFiltered && !(key !== undefined && many.has(key))) {
          const few = await pageOfFew(read, visibility, search);
          if (few !== undefined) return few;
          if (key !== undefined) many.set(key, true);
        }
        return await orderedPage(read, visibility, search, isFiltered);
      }, signal);
    },
    count,
    async candidates(visibility, search, limit, signal) {
      const where = whereBehind(database, visibility, search);
      // The planner does not see the value of a sub-select, so the plan is the same for every limit.
      const most = sql`(select ${limit}::int)`;
      const rows = await composedRead<PlacedCandidate | Record<keyof PlacedCandidate, null>>(
        database.boundedRead,
        sql`select candidate.*
          from (select count(*) as count from (
            select from threadloom.threads ${where} limit ${most} + 1) counted) counted
          left join lateral (
            select ${sql.raw(`${CANDIDATE_COLUMNS}, ${placeColumn(search.sortBy)}`)} from threadloom.threads ${where}
             order by ${sql.raw(orderBy(search))}
          ) candidate on counted.count <= ${most}
         where counted.count > ${most} or candidate.thread_id is not null`,
        { signal },
      );
      return rows.some((row) => row.thread_id === null) ? undefined : (rows as PlacedCandidate[]);
    },
    async records(visibility, ids, parts, signal) {
      const rows = await composedRead<RecordRow>(
        database.boundedRead,
        sql`select record.* from unnest(${ids}::uuid[]) with ordinality as wanted (id, place)
          cross join lateral (
            select ${sql.raw(storedColumns(parts))} from threadloom.threads
             where thread_id = wanted.id and ${whereVisible(visibility, "metadata")}) record
          order by wanted.place`,
        { signal, weight: pageOf(parts) },
      );
      return openRecords(database, rows);
    },
  };
};
