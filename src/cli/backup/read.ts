import { createReadStream } from "node:fs";
import { once } from "node:events";
import { finished } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import pg from "pg";
import { statement } from "../../platform/database/statement.ts";
import { from as copyFrom } from "pg-copy-streams";
import { isDistributed } from "../../platform/database/distributed/placement.ts";
import { migrate, readMigrations, type Migration } from "../../platform/database/migrate.ts";
import { StartError } from "../../platform/domain/errors.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import {
  backupEnd,
  backupHead,
  backupTable,
  columnsText,
  END_OF_ROWS,
  linesOf,
  PLAIN_TEXTS,
  quotedName,
  type BackupHead,
} from "./format.ts";
import { assertNoServers } from "../running-servers.ts";

const END = Buffer.from(END_OF_ROWS);
const NEW_LINE = Buffer.from("\n");

const openLines = (file: string): AsyncGenerator<Buffer> => {
  const gunzip = createGunzip();
  const source = createReadStream(file);
  source.on("error", (error) => gunzip.destroy(error));
  return linesOf(source.pipe(gunzip));
};

const jsonIn = (line: Buffer | undefined | void): unknown => {
  try {
    return JSON.parse(line?.toString("utf8") ?? "");
  } catch {
    return undefined;
  }
};

const headIn = (file: string, line: Buffer | undefined | void): BackupHead => {
  const head = backupHead.safeParse(jsonIn(line));
  if (head.success) return head.data;
  throw new StartError(`${file} is not a backup that this version can read.`);
};

/** Checks the whole file before anything is changed. */
const inspect = async (file: string): Promise<BackupHead> => {
  const cut = (cause?: unknown): StartError => new StartError(`${file} is not whole.`, { cause });
  const lines = openLines(file);
  const first = await lines.next().catch((error: NodeJS.ErrnoException) => {
    throw new StartError(`${file} can't be read as a backup: ${error.message}.`, { cause: error });
  });
  const head = headIn(file, first.value);
  let [isRow, rows, last] = [false, 0, undefined as Buffer | undefined];
  try {
    for await (const line of lines) {
      if (!isRow) {
        last = line;
        isRow = backupTable.safeParse(jsonIn(line)).success;
      } else if (line.equals(END)) isRow = false;
      else rows += 1;
    }
  } catch (error) {
    throw cut(error);
  }
  const end = backupEnd.safeParse(jsonIn(last));
  if (isRow || !end.success || end.data.rows !== rows) throw cut();
  return head;
};

/** This version's migrations up to the backup's last one. Later migrations run after the rows are inserted. */
const migrationsOf = async ({
  migrations,
  threadloom_version: version,
}: BackupHead): Promise<readonly Migration[]> => {
  const known = await readMigrations();
  const isKnown = migrations.every(
    ({ name, checksum }, at) => known[at]?.name === name && known[at].checksum === checksum,
  );
  if (isKnown) return known.slice(0, migrations.length);
  throw new StartError(
    `The backup was made by another version (${version}) with other tables. Restore it with that version.`,
  );
};

const connected = async (connectionString: string): Promise<pg.Client> => {
  const client = new pg.Client({ connectionString, application_name: "threadloom restore" });
  client.on("error", () => undefined);
  await client.connect();
  return client;
};

const TABLES = statement(
  { schema: "text" },
  (sql) => `select c.relname::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = ${sql.schema} and c.relkind = 'r' order by 1`,
);
const REFERENCES = statement(
  { schema: "text" },
  (sql) => `select c.relname::text as "table", k.conname::text as name, pg_get_constraintdef(k.oid) as
    definition
    from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_namespace n on n.oid = c.relnamespace
   where n.nspname = ${sql.schema} and k.contype = 'f'`,
);

const tablesIn = async (client: pg.Client, schema: string): Promise<string[]> =>
  (await client.query<{ name: string }>(TABLES.compile({ schema }))).rows.map(({ name }) => name);

const FILLED_BY_MIGRATIONS: ReadonlySet<string> = new Set(["migrations", "api_key_changes"]);

const firstWithRows = async (client: pg.Client, schema: string): Promise<string | undefined> => {
  for (const table of await tablesIn(client, schema)) {
    if (FILLED_BY_MIGRATIONS.has(table)) continue;
    const { rowCount } = await client.query(`select from ${quotedName(schema)}.${quotedName(table)} limit 1`);
    if (rowCount === 1) return table;
  }
  return undefined;
};

/** Referenced tables come first. References within one table are checked after all its rows. */
const FIRST = ["assistants", "threads", "runs"];
const inOrder = (names: readonly string[]): string[] => [
  ...FIRST.filter((name) => names.includes(name)),
  ...names.filter((name) => !FIRST.includes(name)),
];

/** One statement, because a role that may not create the schema again must not lose it. */
const makeEmpty = async (client: pg.Client, schema: string): Promise<void> => {
  if ((await tablesIn(client, schema)).length === 0) return;
  await client.query(
    `begin; drop schema ${quotedName(schema)} cascade; create schema ${quotedName(schema)}; commit`,
  );
};

interface RestoreOptions {
  connectionString: string;
  schema: string;
  file: string;
  force: boolean;
  onTable(table: string, rows: number): void;
  logger: Logger;
}

const fill = async (client: pg.Client, options: RestoreOptions): Promise<number> => {
  const { schema, file, onTable } = options;
  const place = (table: string): string => `${quotedName(schema)}.${quotedName(table)}`;
  const tables = await tablesIn(client, schema);
  const lines = openLines(file);
  headIn(file, (await lines.next()).value);
  // Recreated below: the file has tables in order of name.
  const { rows: references } = await client.query<{ table: string; name: string; definition: string }>(
    REFERENCES.compile({ schema }),
  );
  for (const { table, name } of references)
    await client.query(`alter table ${place(table)} drop constraint ${quotedName(name)}`);
  for (const table of inOrder(tables)) {
    await client.query(`alter table ${place(table)} disable trigger user`);
    if (table !== "migrations") await client.query(`delete from ${place(table)}`);
  }
  let total = 0;
  for (;;) {
    const value = jsonIn((await lines.next()).value);
    const table = backupTable.safeParse(value);
    if (!table.success) break;
    const { table: name } = table.data;
    if (!tables.includes(name))
      throw new StartError(`${file} names a table '${name}', which this version does not have.`);
    const sink = client.query(copyFrom(`copy ${place(name)} (${columnsText(table.data)}) from stdin`));
    const written = finished(sink);
    written.catch(() => undefined);
    let count = 0;
    for (
      let next = await lines.next();
      next.done !== true && !next.value.equals(END);
      next = await lines.next()
    ) {
      count += 1;
      if (!sink.write(Buffer.concat([next.value, NEW_LINE])))
        await Promise.race([once(sink, "drain"), written]);
    }
    sink.end();
    await written;
    total += count;
    onTable(name, count);
  }
  for (const table of tables) await client.query(`alter table ${place(table)} enable trigger user`);
  for (const { table, name, definition } of references)
    await client.query(`alter table ${place(table)} add constraint ${quotedName(name)} ${definition}`);
  return total;
};

/**
 * Inserts all rows in one transaction at the backup's version, then runs later migrations. Throws StartError with
 * nothing changed.
 */
export const restoreBackup = async (options: RestoreOptions): Promise<{ head: BackupHead; rows: number }> => {
  const { connectionString, schema, file, force, logger } = options;
  const head = await inspect(file);
  const migrations = await migrationsOf(head);
  const client = await connected(connectionString);
  try {
    await assertNoServers(client, schema);
    if (await isDistributed(client, schema))
      throw new StartError(
        "The tables are distributed. Restore into an empty database, and run 'threadloom distribute' on it then.",
      );
    const table = await firstWithRows(client, schema);
    if (table !== undefined && !force)
      throw new StartError(
        `The database is not empty (${schema}.${table} has rows). Restore into an empty database, or use --force, which deletes all rows.`,
      );
    await makeEmpty(client, schema);
    await migrate(connectionString, { schema, migrations, logger });
    await client.query(PLAIN_TEXTS);
    await client.query("begin");
    const rows = await fill(client, options).catch(async (error: unknown) => {
      await client.query("rollback").catch(() => undefined);
      if (error instanceof StartError) throw error;
      throw new StartError(`${file} can't be restored: ${(error as Error).message}.`, { cause: error });
    });
    await client.query("commit");
    await migrate(connectionString, { schema, logger });
    return { head, rows };
  } finally {
    await client.end().catch(() => undefined);
  }
};
