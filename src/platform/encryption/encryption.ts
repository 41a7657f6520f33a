import { createHash } from "node:crypto";
import type { JsonObject, JsonValue } from "../lib/json.ts";
import { setProperty } from "../lib/properties.ts";
import { isEncrypted, type Cipher, type Places } from "./cipher.ts";
import { ENCRYPTED_COLUMNS, type EncryptedColumn } from "./columns.ts";
import { assertSearchable, decryptJson, encryptMetadata, encryptMetadataBut } from "./json.ts";

export type EncryptedTable = keyof typeof ENCRYPTED_COLUMNS;
type Columns<Table extends EncryptedTable> = (typeof ENCRYPTED_COLUMNS)[Table];
export type ColumnName<Table extends EncryptedTable> = keyof Columns<Table> & string;

type KeyOf<Column> = Column extends { places(key: infer Key): Places } ? Key : never;
export type ColumnKey<Table extends EncryptedTable, Name extends ColumnName<Table>> = KeyOf<
  Columns<Table>[Name]
>;
export type ColumnValue<
  Table extends EncryptedTable,
  Name extends ColumnName<Table>,
> = Columns<Table>[Name] extends { encrypted(cipher: Cipher, value: infer Value, key: never): unknown }
  ? Value
  : never;
type StoredValue<
  Table extends EncryptedTable,
  Name extends ColumnName<Table>,
> = Columns<Table>[Name] extends { encrypted(cipher: Cipher, value: never, key: never): infer Stored }
  ? Stored
  : never;

type RowKey<Table extends EncryptedTable, Names> = (
  Names extends ColumnName<Table> ? (key: ColumnKey<Table, Names>) => void : never
) extends (key: infer Key) => void
  ? Key
  : never;

/** Encrypts and decrypts what columns.ts declares. Without keys values are stored as they are. */
export interface Encryption {
  readonly isOn: boolean;
  readonly cipher: Cipher | undefined;
  stored<
    Table extends EncryptedTable,
    Name extends ColumnName<Table>,
    Value extends ColumnValue<Table, Name> | null,
  >(
    table: Table,
    column: Name,
    value: Value,
    key: ColumnKey<Table, Name>,
  ): StoredValue<Table, Name> | Extract<Value, null>;
  /** Returns the same row if it holds nothing encrypted. `key`: for rows without all ids of the table. */
  decrypted<Table extends EncryptedTable, Row extends RowKey<Table, ColumnName<Table>> & object>(
    table: Table,
    row: Row,
  ): Row;
  decrypted<Table extends EncryptedTable, Row extends object>(
    table: Table,
    row: Row,
    key: RowKey<Table, keyof Row>,
  ): Row;
  decryptedRows<Table extends EncryptedTable, Row extends RowKey<Table, ColumnName<Table>> & object>(
    table: Table,
    rows: Row[],
  ): Row[];
  decryptedValue<Table extends EncryptedTable, Name extends ColumnName<Table>, Value>(
    table: Table,
    column: Name,
    value: Value,
    key: ColumnKey<Table, Name>,
  ): Value;
  decryptedJson<Table extends EncryptedTable, Name extends ColumnName<Table>>(
    table: Table,
    column: Name,
    json: string,
    key: ColumnKey<Table, Name>,
  ): string;
  /**
   * Returns an object, because the caller makes the text. Encrypts the whole value of each key for which `staysOpen`
   * returns false.
   */
  encryptedMetadata(
    metadata: JsonObject,
    key: ColumnKey<"checkpoints", "metadata">,
    staysOpen?: (key: string) => boolean,
  ): JsonObject;
  /** See `EncryptedColumn`. */
  reencrypted<Table extends EncryptedTable, Name extends ColumnName<Table>>(
    table: Table,
    column: Name,
    text: string,
    key: ColumnKey<Table, Name>,
    from?: ColumnKey<Table, Name>,
  ): string;
  /** 32 hexadecimal digits. With a key, readers of the digest can't test guesses of the text. */
  digest(text: string): string;
  /** One digest without a key, and one for each key. */
  digests(text: string): string[];
  /** Throws `invalid` for encrypted keys and texts that look encrypted. */
  assertSearchable(filter: JsonValue | undefined): void;
}

export type AnyColumn = EncryptedColumn<unknown, unknown, unknown>;

const COLUMNS: Readonly<Record<EncryptedTable, Readonly<Record<string, AnyColumn>>>> =
  ENCRYPTED_COLUMNS as never;

export const columnOf = (table: EncryptedTable, column: string): AnyColumn => COLUMNS[table][column]!;

const DIGEST_CHARACTERS = 32;
const plainDigest = (text: string): string =>
  createHash("sha256").update(text).digest("hex").slice(0, DIGEST_CHARACTERS);

export const createEncryption = (cipher: Cipher | undefined): Encryption => {
  const readColumns = new Map(
    Object.entries(COLUMNS).map(([table, columns]) => [
      table,
      Object.entries(columns).filter(
        ([, { type, decrypted }]) => decrypted !== undefined && (cipher !== undefined || type === "text"),
      ),
    ]),
  );
  const decryptedRow = <Row extends object>(table: EncryptedTable, row: Row, key: object = row): Row => {
    let decrypted: Row | undefined;
    for (const [name, column] of readColumns.get(table)!) {
      const stored = (row as Record<string, unknown>)[name];
      if (stored === undefined || stored === null) continue;
      const value = column.decrypted!(cipher, stored, key);
      if (value !== stored) setProperty((decrypted ??= { ...row }) as JsonObject, name, value as JsonValue);
    }
    return decrypted ?? row;
  };

  return {
    isOn: cipher !== undefined,
    cipher,
    stored(table, name, value, key) {
      if (value === null) return null as never;
      const column = COLUMNS[table][name]!;
      if (cipher !== undefined) return column.encrypted(cipher, value, key) as never;
      return (column.plain === undefined ? value : column.plain(value)) as never;
    },
    decrypted: decryptedRow,
    decryptedRows: (table, rows) =>
      readColumns.get(table)!.length === 0 ? rows : rows.map((row) => decryptedRow(table, row)),
    decryptedValue(table, name, value, key) {
      // Without keys, only a text can show that its key is missing.
      if (cipher === undefined && !(typeof value === "string" && isEncrypted(value))) return value;
      return columnOf(table, name).decrypted!(cipher, value, key) as typeof value;
    },
    decryptedJson: (table, name, json, key) =>
      cipher === undefined ? json : decryptJson(cipher, json, columnOf(table, name).places(key)),
    encryptedMetadata(metadata, key, staysOpen) {
      if (cipher === undefined) return metadata;
      const [place] = ENCRYPTED_COLUMNS.checkpoints.metadata.places(key);
      return staysOpen === undefined
        ? encryptMetadata(cipher, metadata, place)
        : encryptMetadataBut(cipher, metadata, place, staysOpen);
    },
    reencrypted(table, name, text, key, from) {
      if (cipher === undefined) return text;
      return columnOf(table, name).reencrypted(cipher, text, key, from);
    },
    digest: cipher === undefined ? plainDigest : cipher.digest,
    digests: (text) => [plainDigest(text), ...(cipher?.digests(text) ?? [])],
    assertSearchable(filter) {
      if (cipher !== undefined) assertSearchable(cipher, filter);
    },
  };
};
