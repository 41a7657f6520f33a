import type { ObjectStore } from "./object-store.ts";
import type { Encryption } from "../encryption/encryption.ts";

export interface Queryable {
  /** Queries return encrypted `json` and `jsonb` as `EncryptedJson`; `encryption` decrypts rows. */
  readonly encryption: Encryption;
  /** Where large contents are. Undefined: in the database. */
  readonly objects?: ObjectStore | undefined;
  query<Row>(text: string, values?: unknown[]): Promise<Row[]>;
}
