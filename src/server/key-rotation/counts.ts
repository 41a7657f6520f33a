import type { Queryable } from "../../platform/database/database.ts";
import type { Cipher } from "../../platform/encryption/cipher.ts";

/** Counts of rows. */
export interface TableCount {
  table: string;
  rows: number;
  /** A row may count under several keys. */
  byKey: Map<string, number>;
  /** Rows with values from before the first key. */
  plain: number;
  /** Rows with values of an earlier version, which are bound to no row. */
  unbound: number;
  reencrypted: number;
  busy: number;
  /** Rows that can't be decrypted although their keys are configured. */
  unreadable: number;
  /** Rows by missing key id. A column with a missing key is never stored. */
  byMissingKey: Map<string, number>;
}

export interface WalkOptions {
  database: Pick<Queryable, "query" | "objects">;
  cipher: Cipher;
  /** Stores re-encrypted values instead of only counting. */
  writes: boolean;
  /** Decrypts values of an earlier version; otherwise they count as unreadable. */
  acceptsUnbound: boolean;
  onProgress?: (count: TableCount) => void;
}
