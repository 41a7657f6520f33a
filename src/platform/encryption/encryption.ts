import { createHash } from "node:crypto";
import type { JsonObject, JsonValue } from "../lib/json.ts";
import { setProperty } from "../lib/properties.ts";
import { isEncrypted, type Cipher, type Places } from "./cipher.ts";
import { ENCRYPTED_COLUMNS, type EncryptedColumn } from "./columns.ts";
import { assertSearchable, decryptJson, encryptMetadata } from "./json.ts";

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

export type AnyColumn = EncryptedColumn<unknown, unknown, unknown>;

const COLUMNS: Readonly<Record<EncryptedTable, Readonly<Record<string, AnyColumn>>>> =
  ENCRYPTED_COLUMNS as never;

export const columnOf = (table: EncryptedTable, column: string): AnyColumn => COLUMNS[table][column]!;

const DIGEST_CHARACTERS = 32;
const plainDigest = (text: string): string =>
  createHash("sha256").update(text).digest("hex").slice(0, DIGEST_CHARACTERS);

/** Encrypts and decrypts what columns.ts declares. Without keys values are stored as they are. */
export class Encryption {
  readonly isOn: boolean;
  /** 32 hexadecimal digits. With a key, readers of the digest can't test guesses of the text. */
  readonly digest: (text: string) => string;
  private readonly readColumns: ReadonlyMap<string, readonly (readonly [name: string, column: AnyColumn])[]>;

  constructor(readonly cipher: Cipher | undefined) {
    this.isOn = cipher !== undefined;
    this.digest = cipher === undefined ? plainDigest : cipher.digest;
    this.readColumns = new Map(
      Object.entries(COLUMNS).map(([table, columns]) => [
        table,
        Object.entries(columns).filter(
          ([, { type, decrypted }]) => decrypted !== undefined && (this.isOn || type === "text"),
        ),
      ]),
    );
  }

  stored<
    Table extends EncryptedTable,
    Name extends ColumnName<Table>,
    Value extends ColumnValue<Table, Name> | null,
  >(
    table: Table,
    name: Name,
    value: Value,
    key: ColumnKey<Table, Name>,
  ): StoredValue<Table, Name> | Extract<Value, null> {
    if (value === null) return null as never;
    const column = columnOf(table, name);
    if (this.cipher !== undefined) return column.encrypted(this.cipher, value, key) as never;
    return (column.plain === undefined ? value : column.plain(value)) as never;
  }

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
  decrypted<Row extends object>(table: EncryptedTable, row: Row, key: unknown = row): Row {
    let decrypted: Row | undefined;
    for (const [name, column] of this.readColumns.get(table)!) {
      const stored = (row as Record<string, unknown>)[name];
      if (stored === undefined || stored === null) continue;
      const value = column.decrypted!(this.cipher, stored, key);
      if (value !== stored) setProperty((decrypted ??= { ...row }) as JsonObject, name, value as JsonValue);
    }
    return decrypted ?? row;
  }

  decryptedRows<Table extends EncryptedTable, Row extends RowKey<Table, ColumnName<Table>> & object>(
    table: Table,
    rows: Row[],
  ): Row[] {
    return this.readColumns.get(table)!.length === 0 ? rows : rows.map((row) => this.decrypted(table, row));
  }

  decryptedValue<Table extends EncryptedTable, Name extends ColumnName<Table>, Value>(
    table: Table,
    name: Name,
    value: Value,
    key: ColumnKey<Table, Name>,
  ): Value {
    // Without keys, only a text can show that its key is missing.
    if (!this.isOn && !(typeof value === "string" && isEncrypted(value))) return value;
    return columnOf(table, name).decrypted!(this.cipher, value, key) as Value;
  }

  decryptedJson<Table extends EncryptedTable, Name extends ColumnName<Table>>(
    table: Table,
    name: Name,
    json: string,
    key: ColumnKey<Table, Name>,
  ): string {
    return this.cipher === undefined
      ? json
      : decryptJson(this.cipher, json, columnOf(table, name).places(key));
  }

  /**
   * Returns an object, because the caller makes the text. Encrypts the whole value of each key for which `staysOpen`
   * returns false.
   */
  encryptedMetadata(
    metadata: JsonObject,
    key: ColumnKey<"checkpoints", "metadata">,
    staysOpen: (key: string) => boolean = () => true,
  ): JsonObject {
    if (this.cipher === undefined) return metadata;
    const [place] = ENCRYPTED_COLUMNS.checkpoints.metadata.places(key);
    return encryptMetadata(this.cipher, metadata, place, staysOpen);
  }

  /** See `EncryptedColumn`. */
  reencrypted<Table extends EncryptedTable, Name extends ColumnName<Table>>(
    table: Table,
    name: Name,
    text: string,
    key: ColumnKey<Table, Name>,
    from?: ColumnKey<Table, Name>,
  ): string {
    return this.cipher === undefined ? text : columnOf(table, name).reencrypted(this.cipher, text, key, from);
  }

  /** One digest without a key, and one for each key. */
  digests(text: string): string[] {
    return [plainDigest(text), ...(this.cipher?.digests(text) ?? [])];
  }

  /** Throws `invalid` for encrypted keys and texts that look encrypted. */
  assertSearchable(filter: JsonValue | undefined): void {
    if (this.cipher !== undefined) assertSearchable(this.cipher, filter);
  }
}
