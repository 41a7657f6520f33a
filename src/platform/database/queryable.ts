import type { Encryption } from "../encryption/encryption.ts";

export interface Queryable {
  /** Queries return encrypted `json` and `jsonb` as `EncryptedJson`; `encryption` decrypts rows. */
  readonly encryption: Encryption;
  query<Row>(text: string, values?: unknown[]): Promise<Row[]>;
}
