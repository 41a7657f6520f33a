import type { Encryption } from "../../platform/database/database.ts";

/** null: SQL null. */
export type EncryptedRow = Readonly<Record<string, string | null>>;

/** Text that needs no encryption stays. */
export type Reencrypt = (text: string, encryption: Encryption) => string;

/** How the rotation reads a table that platform/encryption/columns.ts declares. */
export interface TableKeys {
  /** The primary key in order, with types. */
  key: readonly (readonly [column: string, type: string])[];
  /** SQL for further ids of the row, by name; `t` is the row. */
  also?: Readonly<Record<string, string>>;
  /** The ids as the declaration names them. Default: the texts of the row. */
  ids?: (row: EncryptedRow) => object;
  /** Text columns that hold digests of encrypted values. */
  digests?: readonly string[];
  /** Columns that need more than their declaration. */
  special?: (row: EncryptedRow) => Readonly<Record<string, Reencrypt>>;
}

export interface WalkedTable extends Pick<TableKeys, "key" | "also"> {
  name: string;
  /** With types. */
  columns: readonly (readonly [column: string, type: "text" | "json" | "jsonb" | "bytea"])[];
  reencrypt(row: EncryptedRow): Readonly<Record<string, Reencrypt>>;
}

export const textOf = (row: EncryptedRow, column: string): string => row[column] ?? "";
