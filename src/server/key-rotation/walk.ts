import type { Queryable } from "../../platform/database/database.ts";
import { retryPassing } from "../../platform/database/passing-faults.ts";
import { statement, type Statement } from "../../platform/database/statement.ts";
import { EncryptionError, StartError, StateStorageError } from "../../platform/domain/errors.ts";
import { ENCRYPTED_PREFIX, isEncrypted, type Cipher } from "../../platform/encryption/cipher.ts";
import { Encryption } from "../../platform/encryption/encryption.ts";
import { replaceObject } from "../../state/checkpoints/objects.ts";
import { ENCRYPTED_TABLES, type EncryptedRow, type KeyType, type WalkedTable } from "./tables.ts";

const ROWS_AT_ONCE = 100;
/** A larger row is read alone. */
const BYTES_AT_ONCE = 4_000_000;
const TRIES = 10;
const RETRY_MS = 30_000;

/** Counts of rows. */
export interface WalkCount {
  /** A row may count under several keys. Includes keys that are not configured. */
  byKey: Map<string, number>;
  /** Rows with values from before the first key. */
  plain: number;
  reencrypted: number;
  busy: number;
  /** Rows that can't be decrypted although their keys are configured. */
  unreadable: number;
}

export interface WalkOptions {
  database: Pick<Queryable, "query" | "objects">;
  cipher: Cipher;
  /** Stores re-encrypted values instead of only counting. */
  writes: boolean;
  onProgress?: (progress: { table: string; rows: number; reencrypted: number }) => void;
}

/** A value before the first key of each type, so that one statement reads all pages. */
const FIRST: Readonly<Record<KeyType, string>> = {
  uuid: "00000000-0000-0000-0000-000000000000",
  int: "-1",
  bigint: "-1",
  text: "",
  "text[]": "{}",
};

const named = <T extends "text" | "text[]">(names: readonly string[], type: T): Readonly<Record<string, T>> =>
  Object.fromEntries(names.map((name) => [name, type]));

const textsIn = (table: WalkedTable): readonly (readonly [column: string, sql: string])[] =>
  table.columns.map(([column, type]) => [
    column,
    type === "bytea" ? `encode(t.${column}, 'base64')` : `t.${column}::text`,
  ]);

/** The rows behind a key. Index: the primary key. */
const pageOf = (table: WalkedTable) => {
  const keys = Object.keys(table.key).map((column) => `t.${column}`);
  const texts = [...textsIn(table), ...Object.entries(table.also ?? {})];
  const selected = [
    ...keys.map((key) => `${key}::text`),
    ...texts.map(([name, sql]) => `(${sql})::text as ${name}`),
  ];
  const bytes = table.columns.map(([column]) => `coalesce(pg_column_size(t.${column}), 0)`).join(" + ");
  return statement(named(Object.keys(table.key), "text"), (sql) => {
    const behind = Object.entries(table.key).map(([column, type]) => `${sql[column]}::${type}`);
    return `select ${selected.join(", ")} from (
      select t.*, coalesce(sum(${bytes}) over (
        order by ${keys.join(", ")} rows between unbounded preceding and 1 preceding), 0) as bytes_before
      from threadloom.${table.name} t where (${keys.join(", ")}) > (${behind.join(", ")})
      order by ${keys.join(", ")} limit ${ROWS_AT_ONCE}) t
    where bytes_before < ${BYTES_AT_ONCE} order by ${keys.join(", ")}`;
  });
};

/**
 * Updates only rows with unchanged columns, and returns their keys; compares text, because not every database has xmin.
 * Index: the primary key.
 */
const storing = (table: WalkedTable) => {
  const keys = Object.entries(table.key);
  const texts = textsIn(table);
  const names = [
    ...keys.map(([column]) => `key_${column}`),
    ...texts.flatMap(([column]) => [`old_${column}`, `new_${column}`]),
  ];
  const set = table.columns.map(([column, type]) =>
    type === "bytea"
      ? `${column} = decode(n.new_${column}, 'base64')`
      : `${column} = n.new_${column}::${type}`,
  );
  const conditions = [
    ...keys.map(([column, type]) => `t.${column} = n.key_${column}::${type}`),
    ...texts.map(([column, text]) => `${text} is not distinct from n.old_${column}`),
  ];
  return statement(
    named(names, "text[]"),
    (sql) => `update threadloom.${table.name} t set ${set.join(", ")}
    from unnest(${Object.values(sql).join(", ")}) as n (${names.join(", ")})
    where ${conditions.join(" and ")} returning ${keys.map(([column]) => `t.${column}::text`).join(", ")}`,
  );
};

const sourceOf = (
  table: WalkedTable,
  changes: readonly { row: EncryptedRow; next: EncryptedRow }[],
): Record<string, (string | null | undefined)[]> =>
  Object.fromEntries([
    ...Object.keys(table.key).map((column) => [`key_${column}`, changes.map(({ row }) => row[column])]),
    ...table.columns.flatMap(([column]) => [
      [`old_${column}`, changes.map(({ row }) => row[column])],
      [`new_${column}`, changes.map(({ next }) => next[column])],
    ]),
  ]) as Record<string, (string | null | undefined)[]>;

/** The key of a text that begins like an encrypted one. */
const keyIdIn = (text: string): string => text.slice(ENCRYPTED_PREFIX.length).split(":", 1)[0]!;

/**
 * Counts rows by the keys of their values. If it `writes`, it stores them with the newest key, and counts rows that were
 * busy several times. Runs beside servers. Each statement is its own transaction and updates only unchanged
 * rows, so an interrupted walk can be repeated.
 */
export const walkEncrypted = async (options: WalkOptions): Promise<WalkCount> => {
  const { database, cipher, writes, onProgress } = options;
  const count: WalkCount = { byKey: new Map(), plain: 0, reencrypted: 0, busy: 0, unreadable: 0 };
  const encryption = new Encryption(cipher);
  const query = <Source>(asked: Statement<Source>, source: Source): Promise<EncryptedRow[]> =>
    retryPassing(() => asked.query<EncryptedRow>(database, source), { forMs: RETRY_MS });
  const countKey = (id: string): void => void count.byKey.set(id, (count.byKey.get(id) ?? 0) + 1);

  /**
   * Undefined: nothing to store. A column that can't be decrypted must not keep the other columns from the newest key.
   */
  const reencrypted = (table: WalkedTable, row: EncryptedRow): EncryptedRow | undefined => {
    const next: Record<string, string | null> = { ...row };
    const ids = new Set<string>();
    let [isPlain, isOpened, isUnreadable] = [false, false, false];
    for (const [column, type] of table.columns) {
      const text = row[column] ?? "";
      if (text === "") continue;
      const use = { encrypted: 0, opened: [] as string[] };
      try {
        const stored = cipher.recording(use, () => table.reencrypt(column, text, encryption, row));
        next[column] = stored;
        for (const id of use.opened) ids.add(id);
        if (use.encrypted > use.opened.length) isPlain = true;
        // Metadata keys that are no longer chosen for encryption.
        if (use.encrypted < use.opened.length) isOpened = true;
      } catch (error) {
        if (!(error instanceof EncryptionError || error instanceof SyntaxError)) throw error;
        const missing = error instanceof EncryptionError ? error.missingKeyId : undefined;
        if (missing === undefined) isUnreadable = true;
        else ids.add(missing);
        // The rest of the column is unread, and may need any key that it names.
        const readable = type === "bytea" ? Buffer.from(text, "base64").toString("latin1") : text;
        for (const id of cipher.keyIds) if (readable.includes(`${ENCRYPTED_PREFIX}${id}:`)) ids.add(id);
      }
    }
    ids.forEach(countKey);
    if (isUnreadable) count.unreadable += 1;
    if (isPlain) count.plain += 1;
    const isOlder = [...ids].some((id) => id !== cipher.keyId && cipher.keyIds.includes(id));
    const isChanged = table.columns.some(([column]) => next[column] !== row[column]);
    return isChanged && (isOlder || isPlain || isOpened) ? next : undefined;
  };

  /** A content in the object store: the row has only the beginning of its text. */
  const takeObject = async ({ thread_id: threadId, hash, object, content }: EncryptedRow): Promise<void> => {
    const id = isEncrypted(content ?? "") ? keyIdIn(content ?? "") : undefined;
    if (id === undefined) count.plain += 1;
    else countKey(id);
    if (!writes || id === cipher.keyId || (id !== undefined && !cipher.keyIds.includes(id))) return;
    const { objects } = database;
    if (objects === undefined) throw new StartError("Values are in an object store: set OBJECT_STORE_URL.");
    const of = { threadId: threadId!, hash: hash!, objectId: object! };
    try {
      const text = await objects.read(of.objectId);
      const stored = encryption.reencrypted("checkpoint_contents", "content", text, of);
      if (await replaceObject(database, objects, of, stored)) count.reencrypted += 1;
      else count.busy += 1;
    } catch (error) {
      if (!(error instanceof EncryptionError || error instanceof StateStorageError)) throw error;
      count.unreadable += 1;
    }
  };

  const walkTable = async (table: WalkedTable): Promise<void> => {
    const [page, store] = [pageOf(table), storing(table)];
    const keys = Object.keys(table.key);
    const nameOf = (row: EncryptedRow): string => JSON.stringify(keys.map((column) => row[column]));
    let last: EncryptedRow = Object.fromEntries(
      Object.entries(table.key).map(([column, type]) => [column, FIRST[type]]),
    );
    const before = count.reencrypted;
    for (let rows = 0, found: EncryptedRow[]; ; last = found.at(-1)!) {
      found = await query(page, last);
      let left = found;
      for (let tries = 1; left.length > 0; tries++) {
        const changes: { row: EncryptedRow; next: EncryptedRow }[] = [];
        for (const row of left) {
          if (row["object"] != null) await takeObject(row);
          else {
            const next = reencrypted(table, row);
            if (next !== undefined) changes.push({ row, next });
          }
        }
        if (!writes || changes.length === 0) break;
        const stored = new Set((await query(store, sourceOf(table, changes))).map(nameOf));
        count.reencrypted += stored.size;
        const busy = new Set(changes.map(({ row }) => nameOf(row)).filter((name) => !stored.has(name)));
        if (tries === TRIES) count.busy += busy.size;
        if (busy.size === 0 || tries === TRIES) break;
        left = (await query(page, last)).filter((row) => busy.has(nameOf(row)));
      }
      rows += found.length;
      onProgress?.({ table: table.name, rows, reencrypted: count.reencrypted - before });
      if (found.length === 0) return;
    }
  };

  for (const table of ENCRYPTED_TABLES) await walkTable(table);
  return count;
};
