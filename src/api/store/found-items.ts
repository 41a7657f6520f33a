import type { StoreItemRow } from "../../platform/database/tables.ts";

export interface StoredItem extends Pick<
  StoreItemRow,
  "namespace" | "key" | "value" | "created_at" | "updated_at"
> {
  /** Undefined: never expires. */
  expiry?: ItemExpiry;
}

export interface ItemExpiry {
  /** Minutes without a read or write. */
  ttlMinutes: number;
  /** The expiry before this read, which may move it. */
  expiresAt: Date;
}

export interface FoundItem extends StoredItem {
  /** Cosine similarity, at most 1; only of a semantic search. */
  score?: number;
}

export interface FoundRow extends Omit<FoundItem, "expiry"> {
  ordinal: number;
  /** `ttl_minutes` and `expires_at` are both null or both set. */
  ttl_minutes: number | null;
  expires_at: Date | null;
}

export const itemOf = (row: FoundRow): StoredItem => {
  const { namespace, key, value, created_at, updated_at, ttl_minutes, expires_at } = row;
  const item = { namespace, key, value, created_at, updated_at };
  return ttl_minutes === null || expires_at === null
    ? item
    : { ...item, expiry: { ttlMinutes: ttl_minutes, expiresAt: expires_at } };
};

export const foundItemOf = (row: FoundRow): FoundItem =>
  row.score === undefined ? itemOf(row) : { ...itemOf(row), score: row.score };
