/** How a column is sealed anew, by what stands in it. */

import type { Cipher } from "../../platform/encryption/cipher.ts";
import type { JsonColumn } from "../../platform/encryption/columns.ts";

/** Texts of a row's columns by their names; null: nothing is stored. */
export type EncryptedRow = Readonly<Record<string, string | null>>;

export interface EncryptedTable {
  name: string;
  /** The columns of the primary key, in its order, with their types. */
  key: readonly (readonly [column: string, type: string])[];
  /** What may be sealed, with the types of the columns. */
  columns: readonly (readonly [column: string, type: "text" | "json" | "jsonb" | "bytea"])[];
  /** SQL of what else `reencrypt` has to know, as text, by its name; `t` is the row. */
  also?: Readonly<Record<string, string>>;
  /** How each column is encrypted with the newest key, whatever key encrypted it before. Text that needs no encryption stays. */
  reencrypt(row: EncryptedRow): Readonly<Record<string, Reencrypt>>;
}

export type Reencrypt = (text: string, cipher: Cipher) => string;

export const textOf = (row: EncryptedRow, column: string): string => row[column] ?? "";
/** How the columns of a row that are declared in platform/encryption/columns.ts are sealed anew. */
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
