import type { StoreItemRow } from "../../platform/database/tables.ts";

export interface StoredItem extends Pick<
  StoreItemRow,
  "namespace" | "key" | "value" | "created_at" | "updated_at"
> {
  /** Undefined: the item stays for ever. */
  expiry?: ItemExpiry;
}

export interface ItemExpiry {
  /** Minutes without a read or a write after which it expires. */
  ttlMinutes: number;
  /** As it was found: a read that starts the time anew moves it. */
  expiresAt: Date;
}

export interface FoundItem extends StoredItem {
  /** Cosine similarity, 1 at most; only of a search by meaning. */
  score?: number;
}

/** As statements find it. */
export interface FoundRow extends Omit<FoundItem, "expiry"> {
  ordinal: number;
  /** Both null, or none. */
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
