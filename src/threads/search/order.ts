import type { ThreadStatus } from "../../database/tables.ts";
import type { ThreadSearch } from "../schemas.ts";

export type SortKey = NonNullable<ThreadSearch["sort_by"]>;

export interface RowOrder {
  sortBy: SortKey;
  sortOrder: "asc" | "desc";
}

/** In the order of their names. */
export const STATUSES: readonly ThreadStatus[] = ["busy", "error", "idle", "interrupted"];

/**
 * What the order is made of, the first key first. Indexed columns give the order of times roughly, and ten minutes are
 * sorted at a time. No index holds `status`: see `inOrder` in search.ts.
 */
const SORT_KEYS: Record<SortKey, readonly string[]> = {
  thread_id: ["thread_id"],
  status: ["status", "created_at", "thread_id"],
  created_at: ["created_at", "thread_id"],
  updated_at: ["updated_bin", "updated_at", "thread_id"],
  state_updated_at: ["state_updated_bin", "state_updated_at", "thread_id"],
};

export const sortKeys = (sortBy: SortKey): string => SORT_KEYS[sortBy].join(", ");

/** For `order by`. `table`: the name of what has the keys. */
export const orderBy = ({ sortBy, sortOrder }: RowOrder, table = "threads"): string =>
  SORT_KEYS[sortBy].map((key) => `${table}.${key} ${sortOrder}`).join(", ");
