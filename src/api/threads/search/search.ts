import { createHash } from "node:crypto";
import { sql, type RawBuilder, type SqlBool } from "kysely";
import { LRUCache } from "lru-cache";
import { type Visibility, whereVisible } from "../../../access/visibility.ts";
import type { BoundedRead, PageColumns, PageWeight } from "../../../platform/database/bounded-reads.ts";
import { composedRead } from "../../../platform/database/queries.ts";
import type { Database } from "../../../platform/database/database.ts";
import type { ThreadStatus } from "../../../platform/database/tables.ts";
import {
  ID,
  MICROSECONDS,
  microsecondsOf,
  readCursor,
  timeOf,
  writeCursor,
} from "../../../platform/domain/cursors.ts";
import { invalid } from "../../../platform/domain/errors.ts";
import {
  CANDIDATE_COLUMNS,
  LONG_COLUMNS,
  openRecords,
  RECORD_COLUMNS,
  STORED_COLUMNS,
  type ThreadRecordRow,
} from "../record.ts";
import type { ThreadFilter, ThreadSearch } from "../schemas.ts";

type SortKey = NonNullable<ThreadSearch["sort_by"]>;

export interface RowOrder {
  sortBy: SortKey;
  sortOrder: "asc" | "desc";
}

export type RowFilter = Partial<Pick<ThreadFilter, "metadata" | "status" | "ids">>;

export interface OrderedFilter extends RowFilter, RowOrder {
  /** Only threads behind this place. */
  cursor?: string | undefined;
}

export interface RowSearch extends OrderedFilter {
  limit: number;
  offset: number;
}

interface PlaceColumn {
  /** Microseconds of the time by which the list is sorted; null in other orders. */
  place: string | null;
}
export type Placed = PlaceColumn & { thread_id: string };

export type Candidate = Pick<ThreadRecordRow, "thread_id" | "graph_id" | "untouched">;
export type PlacedCandidate = Candidate & PlaceColumn;

export interface RowPage {
  /** Only the rows for which a page has room; see `roomyPage`. */
  rows: (ThreadRecordRow & PlaceColumn)[];
  /** Undefined if too many match to count. Callers ignore it behind a cursor. */
  total: number | undefined;
  /** Whether no matching thread follows. */
  isLast: boolean;
}

/** `_bin` columns index times by ten minutes, and PostgreSQL sorts within them. No index holds `status`. */
const SORT_KEYS: Record<SortKey, readonly string[]> = {
  thread_id: ["thread_id"],
  status: ["status", "created_at", "thread_id"],
  created_at: ["created_at", "thread_id"],
  updated_at: ["updated_bin", "updated_at", "thread_id"],
  state_updated_at: ["state_updated_bin", "state_updated_at", "thread_id"],
};

const orderBy = ({ sortBy, sortOrder }: RowOrder, table = "threads"): RawBuilder<unknown> =>
  sql.raw(SORT_KEYS[sortBy].map((key) => `${table}.${key} ${sortOrder}`).join(", "));

const isByTime = (sortBy: SortKey): boolean => sortBy !== "thread_id" && sortBy !== "status";
const placeColumn = (sortBy: SortKey): string =>
  `${isByTime(sortBy) ? microsecondsOf(sortBy) : "null"} as place`;

const nameOf = ({ sortBy, sortOrder }: RowOrder): string => `threads ${sortBy} ${sortOrder}`;

/** Undefined in the order by status, which no index holds. */
export const cursorBehind = (order: RowOrder, { place, thread_id }: Placed): string | undefined =>
  order.sortBy === "status"
    ? undefined
    : writeCursor(nameOf(order), place === null ? [thread_id] : [place, thread_id]);

/** A row comparison can use the index of the first key. */
const isBehind = (order: RowOrder, cursor: string): RawBuilder<SqlBool> => {
  const { sortBy, sortOrder } = order;
  if (sortBy === "status")
    throw invalid("'cursor': a list by 'status' has none; sort by 'created_at', or give 'offset'.");
  const keys = readCursor(cursor, nameOf(order), isByTime(sortBy) ? [MICROSECONDS, ID] : [ID]);
  const values = SORT_KEYS[sortBy].map((key) => {
    if (key === "thread_id") return sql`${keys.at(-1)}::uuid`;
    const time = sql`${timeOf(keys[0] ?? "")}::timestamptz`;
    return key.endsWith("_bin")
      ? sql`date_bin('10 minutes', ${time}, timestamptz '2000-01-01 00:00:00+00')`
      : time;
  });
  const than = sql.raw(sortOrder === "asc" ? ">" : "<");
  return sql`(${sql.raw(SORT_KEYS[sortBy].join(", "))}) ${than} (${sql.join(values)})`;
};

/**
 * `status` has no index, because every run would update it. These conditions follow from the status and have one:
 * runs_pending_of_thread, runs_one_begun_per_thread, threads_by_resting_status.
 */
const HOW_TO_FIND: Partial<Record<ThreadStatus, string>> = {
  busy: `thread_id in (select thread_id from threadloom.runs where status = 'pending'
    union all select thread_id from threadloom.runs where status = 'running')`,
  interrupted: "resting_status = 'interrupted' and resting_status <> 'idle'",
  error: "resting_status = 'error' and resting_status <> 'idle'",
};

const isNarrowedBy = (metadata: RowFilter["metadata"]): metadata is NonNullable<typeof metadata> =>
  metadata !== undefined && Object.keys(metadata).length > 0;

/**
 * The planner must see the values of parameters: behind a sub-select it read all of 200,000 threads for a page of 200.
 * No client input becomes SQL text, so there are at most some thousand variants.
 */
const whereMatches = (
  { encryption }: Database,
  visibility: Visibility<"threads">,
  filter: RowFilter,
  order?: OrderedFilter,
): RawBuilder<unknown> => {
  const conditions: RawBuilder<SqlBool>[] = [];
  // One jsonb for the filter, for threads_by_metadata (gin, jsonb_path_ops).
  if (isNarrowedBy(filter.metadata)) {
    encryption.assertSearchable(filter.metadata);
    conditions.push(sql`metadata @> ${JSON.stringify(filter.metadata)}::jsonb`);
  }
  if (filter.status !== undefined) {
    conditions.push(sql`status = ${sql.lit(filter.status)}`);
    const found = HOW_TO_FIND[filter.status];
    if (found !== undefined) conditions.push(sql.raw(found));
  }
  if (filter.ids !== undefined) conditions.push(sql`thread_id = any(${filter.ids}::uuid[])`);
  if (!visibility.hidesNothing) conditions.push(whereVisible(visibility, "metadata"));
  if (order?.cursor !== undefined) conditions.push(isBehind(order, order.cursor));
  return conditions.length === 0 ? sql`` : sql`where ${sql.join(conditions, sql` and `)}`;
};

/** A count reads every match, so larger results have no total. */
const COUNTED_AT_MOST = 10_000;
/** Counting up to the bound takes five times as long as a page of so many threads. */
const MANY_REMEMBERED_MS = 60_000;
const MANY_REMEMBERED_AT_MOST = 10_000;

/** Clients choose the length of a filter. */
const keyOf = (visibility: Visibility<"threads">, { metadata, status }: RowFilter): string =>
  createHash("sha256")
    .update(JSON.stringify([metadata, status, visibility.on("metadata")]))
    .digest("base64");

type PageRow = RowPage["rows"][number] & PageColumns;

/** `more`: SQL for further columns. */
const pageOf = (sortBy: SortKey, more = ""): PageWeight => ({
  columns: LONG_COLUMNS,
  sent: `${more}${RECORD_COLUMNS}, ${placeColumn(sortBy)}`,
});

const limitAndOffset = (limit: number, offset: number): RawBuilder<unknown> =>
  sql`limit ${limit}::bigint offset ${offset}::bigint`;

/**
 * Bounded reads (platform/database/bounded-reads.ts) reject with `invalid` after their time, and with the signal's
 * reason.
 */
export const createThreadSearcher = (database: Database) => {
  /** Filters with too many matches to count. */
  const many = new LRUCache<string, true>({ max: MANY_REMEMBERED_AT_MOST, ttl: MANY_REMEMBERED_MS });

  /** Undefined if more match than `atMost`. */
  const countIn = async (
    read: Database["boundedRead"],
    where: RawBuilder<unknown>,
    atMost = Infinity,
    signal?: AbortSignal,
  ): Promise<number | undefined> => {
    const bound = atMost === Infinity ? sql`` : sql`limit ${sql.lit(atMost + 1)}`;
    const counting = sql`select count(*) as total from (select from threadloom.threads ${where} ${bound}) matching`;
    const [counted] = await composedRead<{ total: string }>(read, counting, { signal });
    const total = Number(counted?.total ?? 0);
    return total > atMost ? undefined : total;
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
           select ${sql.raw(SORT_KEYS[search.sortBy].join(", "))} from threadloom.threads
           ${whereMatches(database, visibility, search, search)} limit ${most} + 1)
         select counted.total, record.*
           from (select count(*) as total from matching) counted
           left join lateral (
             select matching.* from matching where counted.total <= ${most}
              order by ${orderBy(search, "matching")} ${limitAndOffset(search.limit, search.offset)}) page on true
           left join lateral (
             select ${sql.raw(STORED_COLUMNS)} from threadloom.threads
              where thread_id = page.thread_id) record on true
          order by ${orderBy(search, "page")}`,
      { weight: pageOf(search.sortBy, "total, ") },
    );
    const total = Number(found[0]?.total ?? 0);
    if (total > COUNTED_AT_MOST) return undefined;
    // An empty page has one row without a thread, for the total.
    const rows = openRecords(
      database,
      found.filter((row) => row.thread_id !== null),
    );
    return { rows, total, isLast: search.offset + rows.length >= total };
  };

  /**
   * Reads one row more, to learn whether the page is the last. Indexes: threads_by_creation, _by_update,
   * _by_state_update, threads_pkey.
   */
  const orderedPage = async (
    read: BoundedRead,
    visibility: Visibility<"threads">,
    search: RowSearch,
    isTooManyToCount: boolean,
  ): Promise<RowPage> => {
    const { limit, offset, sortBy, cursor } = search;
    const found = await composedRead<PageRow>(
      read,
      sql`select ${sql.raw(STORED_COLUMNS)} from threadloom.threads
        ${whereMatches(database, visibility, search, search)} order by ${orderBy(search)} ${limitAndOffset(limit + 1, offset)}`,
      { weight: pageOf(sortBy) },
    );
    const rows = openRecords(database, found.slice(0, limit));
    const isLast = Number(found[0]?.page_rows ?? 0) <= rows.length;
    if (isLast && (rows.length > 0 || offset === 0)) return { rows, total: offset + rows.length, isLast };
    // Pages behind a cursor have no total.
    if (isTooManyToCount || cursor !== undefined) return { rows, total: undefined, isLast };
    const total = await countIn(read, whereMatches(database, visibility, search), COUNTED_AT_MOST);
    return { rows, total, isLast };
  };

  return {
    page(visibility: Visibility<"threads">, search: RowSearch, signal?: AbortSignal): Promise<RowPage> {
      const { ids, metadata } = search;
      const isFiltered = !visibility.hidesNothing || ids !== undefined || isNarrowedBy(metadata);
      return database.boundedReads(async (read) => {
        const key = isFiltered && ids === undefined ? keyOf(visibility, search) : undefined;
        if (isFiltered && !(key !== undefined && many.has(key))) {
          const few = await pageOfFew(read, visibility, search);
          if (few !== undefined) return few;
          if (key !== undefined) many.set(key, true);
        }
        return await orderedPage(read, visibility, search, isFiltered);
      }, signal);
    },

    async count(visibility: Visibility<"threads">, filter: RowFilter, signal?: AbortSignal): Promise<number> {
      const where = whereMatches(database, visibility, filter);
      return (await countIn(database.boundedRead, where, Infinity, signal)) ?? 0;
    },

    /** All threads in order, without records. Undefined if there are more than `limit`. */
    async candidates(
      visibility: Visibility<"threads">,
      search: OrderedFilter,
      limit: number,
      signal?: AbortSignal,
    ): Promise<PlacedCandidate[] | undefined> {
      const rows = await composedRead<PlacedCandidate>(
        database.boundedRead,
        sql`select ${sql.raw(`${CANDIDATE_COLUMNS}, ${placeColumn(search.sortBy)}`)} from threadloom.threads
          ${whereMatches(database, visibility, search, search)}
          order by ${orderBy(search)} limit ${limit + 1}::int`,
        { signal },
      );
      return rows.length > limit ? undefined : rows;
    },
  };
};

export type ThreadSearcher = ReturnType<typeof createThreadSearcher>;
