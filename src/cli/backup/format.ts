/**
 * A backup is text, compressed by gzip: a line of JSON that says what is in it; for each table a line of JSON, its rows in the
 * text format of COPY, a line `\.`; a last line of JSON. COPY writes no line break and no such line within a row.
 */
import { z } from "zod";

const NEW_LINE = 10;
export const END_OF_ROWS = "\\.";

export const backupHead = z.object({
  format: z.literal("threadloom backup"),
  version: z.literal(1),
  created_at: z.string(),
  threadloom_version: z.string(),
  /** All that had run, in their order. */
  migrations: z.array(z.object({ name: z.string(), checksum: z.string() })).min(1),
  /** Ids of the keys that rows are encrypted with; the keys themselves are not in a backup. */
  encryption_keys: z.array(z.string()),
});
export type BackupHead = z.output<typeof backupHead>;

export const backupTable = z.object({ table: z.string(), columns: z.array(z.string()).min(1) });
export type BackupTable = z.output<typeof backupTable>;

/** Its absence says that the file is not whole. */
export const backupEnd = z.object({ end: z.literal(true), rows: z.int() });

/** Of every time, interval and number, whatever the database is set to. */
export const PLAIN_TEXTS =
  "set datestyle = 'ISO, YMD'; set intervalstyle = 'postgres'; set timezone = 'UTC'; set extra_float_digits = 3; " +
  "set client_encoding = 'UTF8'; set statement_timeout = 0; set idle_in_transaction_session_timeout = 0";

/** A name from the catalogue, as SQL. */
export const quotedName = (name: string): string => `"${name.replaceAll('"', '""')}"`;

export const columnsText = ({ columns }: BackupTable): string => columns.map(quotedName).join(", ");

/** The lines of a stream, each without its end; only `\n` ends one. */
export async function* linesOf(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  for await (const chunk of stream) {
    let from = 0;
    for (let at = chunk.indexOf(NEW_LINE); at !== -1; at = chunk.indexOf(NEW_LINE, from)) {
      parts.push(chunk.subarray(from, at));
      yield parts.length === 1 ? (parts[0] ?? chunk) : Buffer.concat(parts);
      parts = [];
      from = at + 1;
    }
    if (from < chunk.length) parts.push(chunk.subarray(from));
  }
  if (parts.length > 0) yield Buffer.concat(parts);
}
