import { sql, type RawBuilder, type SqlBool } from "kysely";
import type { ThreadStatus } from "../../../platform/database/tables.ts";
import {
  ID,
  MICROSECONDS,
  microsecondsOf,
  readCursor,
  timeOf,
  writeCursor,
  type Shape,
} from "../../../platform/domain/cursors.ts";
import type { ThreadSearch } from "../schemas.ts";

export type SortKey = NonNullable<ThreadSearch["sort_by"]>;

export interface RowOrder {
  sortBy: SortKey;
  sortOrder: "asc" | "desc";
}

/** The next page begins behind this place. */
export interface Place {
  threadId: string;
  /** A `timestamptz` in UTC; undefined in an order by id. */
  at: string | undefined;
  status: ThreadStatus | undefined;
}

/** Sorted by name. */
export const STATUSES: readonly ThreadStatus[] = ["busy", "error", "idle", "interrupted"];

/**
 * `_bin` columns index times by ten minutes, and PostgreSQL sorts within them. No index holds `status`: see `inOrder`
 * in search.ts.
 */
const SORT_KEYS: Record<SortKey, readonly string[]> = {
  thread_id: ["thread_id"],
  status: ["status", "created_at", "thread_id"],
  created_at: ["created_at", "thread_id"],
  updated_at: ["updated_bin", "updated_at", "thread_id"],
  state_updated_at: ["state_updated_bin", "state_updated_at", "thread_id"],
};

export const sortKeys = (sortBy: SortKey): string => SORT_KEYS[sortBy].join(", ");

export const orderBy = ({ sortBy, sortOrder }: RowOrder, table = "threads"): string =>
  SORT_KEYS[sortBy].map((key) => `${table}.${key} ${sortOrder}`).join(", ");

export interface PlaceColumn {
  /** The sort keys without the id. */
  place: string[];
}

const TIMES = { status: "created_at", created_at: "created_at", updated_at: "updated_at" } as const;

/** For a select from `threads` or from `storedColumns`. */
export const placeColumn = (sortBy: SortKey): string => {
  if (sortBy === "thread_id") return "array[]::text[] as place";
  const time = microsecondsOf(sortBy === "state_updated_at" ? sortBy : TIMES[sortBy]);
  return `array[${sortBy === "status" ? `status, ${time}` : time}] as place`;
};

const nameOf = ({ sortBy, sortOrder }: RowOrder): string => `threads ${sortBy} ${sortOrder}`;

export const cursorBehind = (order: RowOrder, row: PlaceColumn & { thread_id: string }): string =>
  writeCursor(nameOf(order), [...row.place, row.thread_id]);

/** Throws `invalid` for a cursor of another order. */
export const placeOf = (order: RowOrder, cursor: string): Place => {
  const { sortBy } = order;
  const shapes: Shape[] = [ID];
  if (sortBy !== "thread_id") shapes.unshift(MICROSECONDS);
  if (sortBy === "status") shapes.unshift(new RegExp(`^(${STATUSES.join("|")})$`));
  const keys = readCursor(cursor, nameOf(order), shapes);
  const [threadId = "", microseconds, status] = keys.reverse();
  return {
    threadId,
    at: microseconds === undefined ? undefined : timeOf(microseconds),
    status: status as ThreadStatus | undefined,
  };
};

/** A row comparison can use the index of the first key. */
export const isBehind = (
  { sortBy, sortOrder }: RowOrder,
  { at, threadId, status }: Place,
): RawBuilder<SqlBool> => {
  const valueOf = (key: string): RawBuilder<unknown> => {
    if (key === "thread_id") return sql`${threadId}::uuid`;
    if (key === "status") return sql.lit(status);
    const time = sql`${at}::timestamptz`;
    return key.endsWith("_bin")
      ? sql`date_bin('10 minutes', ${time}, timestamptz '2000-01-01 00:00:00+00')`
      : time;
  };
  const values = sql.join(SORT_KEYS[sortBy].map(valueOf));
  return sql`(${sql.raw(sortKeys(sortBy))}) ${sql.raw(sortOrder === "asc" ? ">" : "<")} (${values})`;
};

/** If the place has another status, all or none of the threads are behind it. */
export const isBehindWithin = (
  status: ThreadStatus,
  { sortOrder }: RowOrder,
  place: Place,
): RawBuilder<SqlBool> => {
  if (place.status === undefined || status === place.status)
    return isBehind({ sortBy: "created_at", sortOrder }, place);
  return sql.lit(sortOrder === "asc" ? status > place.status : status < place.status);
};
