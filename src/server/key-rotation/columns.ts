import type { Cipher } from "../../platform/encryption/cipher.ts";
import type { JsonColumn } from "../../platform/encryption/columns.ts";

/** null: SQL null. */
export type EncryptedRow = Readonly<Record<string, string | null>>;

export interface EncryptedTable {
  name: string;
  /** In order, with types. */
  key: readonly (readonly [column: string, type: string])[];
  /** With types. */
  columns: readonly (readonly [column: string, type: "text" | "json" | "jsonb" | "bytea"])[];
  /** SQL for further inputs of `reencrypt`, by name; `t` is the row. */
  also?: Readonly<Record<string, string>>;
  /** Text that needs no encryption stays. */
  reencrypt(row: EncryptedRow): Readonly<Record<string, Reencrypt>>;
}

export type Reencrypt = (text: string, cipher: Cipher) => string;

export const textOf = (row: EncryptedRow, column: string): string => row[column] ?? "";
export const declared = <Key>(
  columns: Readonly<Record<string, Pick<JsonColumn<Key, never>, "reencrypted">>>,
  key: Key,
): Readonly<Record<string, Reencrypt>> =>
  Object.fromEntries(
    Object.entries(columns).map(([name, { reencrypted }]) => [
      name,
      (text: string, cipher: Cipher) => reencrypted(cipher, text, key),
    ]),
  );

export const inPlace =
  (place: string): Reencrypt =>
  (text, cipher) =>
    cipher.encrypt(cipher.decrypt(text, place), place);
