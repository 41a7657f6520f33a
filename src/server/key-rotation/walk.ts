import { retryPassing } from "../../platform/database/passing-faults.ts";
import { statement, type Statement } from "../../platform/database/statement.ts";
import { EncryptionError } from "../../platform/domain/errors.ts";
import { createKeyUse, type TableCount, type WalkOptions } from "./key-use.ts";
import { walkObjects } from "./objects.ts";
import { ENCRYPTED_TABLES, type EncryptedRow, type WalkedTable } from "./tables.ts";

export type { TableCount, WalkOptions };

const KEYS_AT_ONCE = 1_000;
const ROWS_AT_ONCE = 100;
const BYTES_AT_ONCE = 4_000_000;
const TRIES = 10;
const RETRY_MS = 30_000;

/** The primary key's columns as text. */
type Key = readonly string[];

const increment = (counts: Map<string, number>, id: string): void =>
  void counts.set(id, (counts.get(id) ?? 0) + 1);

const columnsOf = (table: WalkedTable) => ({
  keys: table.key.map(([column]) => column),
  reads: table.columns.map(([column, type]) =>
    type === "bytea" ? `encode(t.${column}, 'base64')` : `t.${column}::text`,
  ),
});

const named = <T extends "text" | "text[]">(names: readonly string[], type: T): Readonly<Record<string, T>> =>
  Object.fromEntries(names.map((name) => [name, type]));

/** A page of primary keys with their rows' sizes. Index: the primary key. */
const pageOf = (table: WalkedTable, isFirst: boolean) => {
  const { keys } = columnsOf(table);
  const columns = keys.map((column) => `t.${column}`).join(", ");
  const bytes = table.columns.map(([column]) => `coalesce(pg_column_size(t.${column}), 0)`).join(" + ");
  return statement(named(isFirst ? [] : keys, "text"), (sql) => {
    const behind = table.key.map(([column, type]) => `${sql[column]}::${type}`).join(", ");
    return `select ${keys.map((column) => `t.${column}::text`).join(", ")}, ${bytes} as bytes
    from threadloom.${table.name} t ${isFirst ? "" : `where (${columns}) > (${behind})`} order by ${columns} limit ${KEYS_AT_ONCE}`;
  });
};

const rowsOf = (table: WalkedTable) => {
  const { keys, reads } = columnsOf(table);
  const also = Object.entries(table.also ?? {}).map(([name, sql]) => `(${sql})::text as ${name}`);
  const selected = [
    ...keys.map((column) => `t.${column}::text`),
    ...reads.map((read, index) => `${read} as ${table.columns[index]![0]}`),
    ...also,
  ];
  const on = table.key.map(([column, type]) => `t.${column} = k.${column}::${type}`).join(" and ");
  return statement(
    named(keys, "text[]"),
    (
      sql,
    ) => `select ${selected.join(", ")} from unnest(${Object.values(sql).join(", ")}) as k (${keys.join(", ")})
    join threadloom.${table.name} t on ${on}`,
  );
};

/**
 * Updates only rows with unchanged columns, and returns their keys; compares text, because not every database has xmin.
 * Index: the primary key.
 */
const storing = (table: WalkedTable) => {
  const { keys, reads } = columnsOf(table);
  const columns = table.columns.map(([column]) => column);
  const names = [
    ...keys.map((column) => `key_${column}`),
    ...columns.map((column) => `old_${column}`),
    ...columns.map((column) => `new_${column}`),
  ];
  const set = table.columns.map(([column, type]) =>
    type === "bytea"
      ? `${column} = decode(n.new_${column}, 'base64')`
      : `${column} = n.new_${column}::${type}`,
  );
  const conditions = [
    ...table.key.map(([column, type]) => `t.${column} = n.key_${column}::${type}`),
    ...columns.map((column, index) => `${reads[index]} is not distinct from n.old_${column}`),
  ];
  return statement(
    named(names, "text[]"),
    (sql) => `update threadloom.${table.name} t set ${set.join(", ")}
    from unnest(${Object.values(sql).join(", ")}) as n (${names.join(", ")})
    where ${conditions.join(" and ")} returning ${keys.map((column) => `t.${column}::text`).join(", ")}`,
  );
};

const createTableWalk = (table: WalkedTable, { database, cipher, writes }: WalkOptions) => {
  const keyOf = (row: EncryptedRow): Key => table.key.map(([column]) => row[column] ?? "");
  const nameOf = (key: Key): string => key.join("\u0000");
  const query = <Source>(asked: Statement<Source>, source: Source): Promise<EncryptedRow[]> =>
    retryPassing(() => asked.query<EncryptedRow>(database, source), { forMs: RETRY_MS });
  const [first, next, read, store] = [
    pageOf(table, true),
    pageOf(table, false),
    rowsOf(table),
    storing(table),
  ];
  const turned = (keys: readonly Key[]): Record<string, string[]> =>
    Object.fromEntries(table.key.map(([column], index) => [column, keys.map((key) => key[index] ?? "")]));

  const use = createKeyUse(cipher);

  /** A column that can't be decrypted must not keep the other columns from the newest key. */
  const reencrypted = (row: EncryptedRow) => {
    const next: Record<string, string | null> = { ...row };
    const found = {
      ids: new Set<string>(),
      missing: new Set<string>(),
      isUnreadable: false,
      isPlain: false,
      isOpened: false,
    };
    const reencrypt = table.reencrypt(row);
    for (const [column, type] of table.columns) {
      const text = row[column];
      const reencryptRow = reencrypt[column];
      if (text == null || reencryptRow === undefined) continue;
      try {
        const { result, openedWith, encrypted } = use.during((encryption) => reencryptRow(text, encryption));
        next[column] = result;
        for (const id of openedWith) found.ids.add(id);
        if (encrypted > openedWith.length) found.isPlain = true;
        // Metadata keys that are no longer chosen for encryption.
        if (encrypted < openedWith.length) found.isOpened = true;
      } catch (error) {
        const missing = error instanceof EncryptionError ? error.missingKeyId : undefined;
        if (missing !== undefined) found.missing.add(missing);
        else if (error instanceof EncryptionError || error instanceof SyntaxError) found.isUnreadable = true;
        else throw error;
        // The rest of the column is unread, and may need any key that it names.
        const readable = type === "bytea" ? Buffer.from(text, "base64").toString("latin1") : text;
        for (const id of use.keysNamedIn(readable)) found.ids.add(id);
      }
    }
    return { next, ...found };
  };

  const stored = async (
    changes: readonly { row: EncryptedRow; next: EncryptedRow }[],
  ): Promise<Set<string>> => {
    const source = Object.fromEntries([
      ...table.key.map(([column]) => [`key_${column}`, changes.map(({ row }) => row[column])] as const),
      ...table.columns.flatMap(([column]) => [
        [`old_${column}`, changes.map(({ row }) => row[column])] as const,
        [`new_${column}`, changes.map(({ next }) => next[column])] as const,
      ]),
    ]);
    return new Set((await query(store, source)).map((row) => nameOf(keyOf(row))));
  };

  const part = async (keys: readonly Key[], count: TableCount, isFirst: boolean): Promise<Key[]> => {
    const changes: { row: EncryptedRow; next: EncryptedRow }[] = [];
    for (const row of await query(read, turned(keys))) {
      const { next, ids, missing, isUnreadable, isPlain, isOpened } = reencrypted(row);
      if (isFirst) {
        for (const id of ids) increment(count.byKey, id);
        for (const id of missing) increment(count.byMissingKey, id);
        if (isUnreadable) count.unreadable += 1;
        if (isPlain) count.plain += 1;
      }
      const isOlder = [...ids].some((id) => id !== cipher.keyId);
      const isChanged = table.columns.some(([column]) => next[column] !== (row[column] ?? null));
      if (isChanged && (isPlain || isOpened || isOlder)) changes.push({ row, next });
    }
    if (!writes || changes.length === 0) return [];
    const done = await stored(changes);
    count.reencrypted += done.size;
    return changes.map(({ row }) => keyOf(row)).filter((key) => !done.has(nameOf(key)));
  };

  return {
    async keysBehind(last: Key | undefined): Promise<{ key: Key; bytes: number }[]> {
      const behind = Object.fromEntries(table.key.map(([column], index) => [column, last?.[index]]));
      return (await query(last === undefined ? first : next, behind)).map((row) => ({
        key: keyOf(row),
        bytes: Number(row.bytes),
      }));
    },

    async take(keys: readonly Key[], count: TableCount): Promise<void> {
      let left = await part(keys, count, true);
      for (let tries = 1; tries < TRIES && left.length > 0; tries++) left = await part(left, count, false);
      count.busy += left.length;
    },
  };
};

const partsOf = (page: readonly { key: Key; bytes: number }[]): Key[][] => {
  const parts: Key[][] = [];
  let bytesInPart = Infinity;
  for (const { key, bytes } of page) {
    if (bytesInPart + bytes > BYTES_AT_ONCE || parts.at(-1)!.length >= ROWS_AT_ONCE) {
      parts.push([]);
      bytesInPart = 0;
    }
    bytesInPart += bytes;
    parts.at(-1)!.push(key);
  }
  return parts;
};

const emptyCount = (table: string): TableCount => ({
  table,
  rows: 0,
  byKey: new Map(),
  plain: 0,
  reencrypted: 0,
  busy: 0,
  unreadable: 0,
  byMissingKey: new Map(),
});

/**
 * Runs beside servers. Each statement is its own transaction and updates only unchanged rows, so an interrupted walk
 * can be repeated.
 */
export const walkEncrypted = async (options: WalkOptions): Promise<TableCount[]> => {
  const counts: TableCount[] = [];
  for (const table of ENCRYPTED_TABLES) {
    const walk = createTableWalk(table, options);
    const count = emptyCount(table.name);
    counts.push(count);
    let last: Key | undefined;
    for (;;) {
      const page = await walk.keysBehind(last);
      for (const keys of partsOf(page)) {
        await walk.take(keys, count);
        count.rows += keys.length;
        options.onProgress?.(count);
      }
      last = page.at(-1)?.key;
      if (page.length < KEYS_AT_ONCE) break;
    }
  }
  const count = emptyCount("objects");
  counts.push(count);
  await walkObjects(options, count);
  return counts;
};
