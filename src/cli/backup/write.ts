import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import pg from "pg";
import { to as copyTo } from "pg-copy-streams";
import { COPY_PREFIX, isDistributed } from "../../platform/database/distributed/placement.ts";
import { hasTable } from "../../platform/database/has-table.ts";
import { inSchema } from "../../platform/database/schema.ts";
import { statement } from "../../platform/database/statement.ts";
import { StartError } from "../../platform/domain/errors.ts";
import { serverVersion } from "../../platform/lib/package-versions.ts";
import {
  columnsText,
  END_OF_ROWS,
  linesOf,
  PLAIN_TEXTS,
  quotedName,
  type BackupHead,
  type BackupTable,
} from "./format.ts";

/** Leaves out vectors, which are recreated from the store's items. */
const TABLES = statement(
  { schema: "text" },
  (sql) => `select c.relname::text as "table", array_agg(a.attname::text order by a.attnum) as columns
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
   where n.nspname = ${sql.schema} and c.relkind = 'r' and c.relname not in ('migrations', 'store_vectors', 'workers')
     and c.relname not like '${COPY_PREFIX.replaceAll("_", "\\_")}%'
   group by c.relname order by c.relname`,
);

const readHead = async (client: pg.Client, schema: string): Promise<BackupHead> => {
  if (!(await hasTable(client, schema, "migrations")))
    throw new StartError(`There are no tables of Threadloom in the schema ${schema}.`);
  const qualified = inSchema(schema);
  const ran = await client.query<{ name: string; checksum: string }>(
    qualified("select name, checksum from threadloom.migrations order by name"),
  );
  const keys = await client.query<{ key_id: string }>(
    qualified("select key_id from threadloom.encryption_keys order by created_at, key_id"),
  );
  return {
    format: "threadloom backup",
    version: 1,
    created_at: new Date().toISOString(),
    threadloom_version: serverVersion(),
    migrations: ran.rows,
    encryption_keys: keys.rows.map((row) => row.key_id),
  };
};

interface WrittenBackup {
  head: BackupHead;
  rows: number;
  isDistributed: boolean;
}

interface WriteOptions {
  connectionString: string;
  schema: string;
  file: string;
  onTable(table: string, rows: number): void;
}

/**
 * Writes a consistent snapshot beside running servers. Only the owner can read the file, which is renamed when
 * complete.
 */
export const writeBackup = async (options: WriteOptions): Promise<WrittenBackup> => {
  const { connectionString, schema, file, onTable } = options;
  const client = new pg.Client({ connectionString, application_name: "threadloom backup" });
  client.on("error", () => undefined);
  const aside = `${file}.part`;
  let rows = 0;
  try {
    await client.connect();
    await client.query(PLAIN_TEXTS);
    await client.query("begin isolation level repeatable read read only");
    const head = await readHead(client, schema);
    const tables = (await client.query<BackupTable>(TABLES.compile({ schema }))).rows;
    const text = async function* (): AsyncGenerator<string | Buffer> {
      yield `${JSON.stringify(head)}\n`;
      for (const table of tables) {
        yield `${JSON.stringify(table)}\n`;
        const name = `${quotedName(schema)}.${quotedName(table.table)}`;
        let count = 0;
        for await (const line of linesOf(
          client.query(copyTo(`copy ${name} (${columnsText(table)}) to stdout`)) as AsyncIterable<Buffer>,
        )) {
          count += 1;
          yield Buffer.concat([line, Buffer.from("\n")]);
        }
        yield `${END_OF_ROWS}\n`;
        rows += count;
        onTable(table.table, count);
      }
      yield `${JSON.stringify({ end: true, rows })}\n`;
    };
    await pipeline(
      Readable.from(text(), { objectMode: true }),
      createGzip(),
      createWriteStream(aside, { mode: 0o600 }),
    );
    await client.query("commit");
    await rename(aside, file);
    return { head, rows, isDistributed: await isDistributed(client, schema) };
  } catch (error) {
    await rm(aside, { force: true });
    throw error;
  } finally {
    await client.end().catch(() => undefined);
  }
};
