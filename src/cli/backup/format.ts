/**
 * A backup is gzip-compressed text: a JSON line (head); per table a JSON line, rows in COPY's text format and a line
 * `\.`; a last JSON line. COPY never writes a line break or a line `\.` within a row.
 */
import { z } from "zod";

const NEW_LINE = 10;
export const END_OF_ROWS = "\\.";

export const backupHead = z.object({
  format: z.literal("threadloom backup"),
  version: z.literal(1),
  created_at: z.string(),
  threadloom_version: z.string(),
  migrations: z.array(z.object({ name: z.string(), checksum: z.string() })).min(1),
  /** The keys themselves are never in a backup. */
  encryption_keys: z.array(z.string()),
});
export type BackupHead = z.output<typeof backupHead>;

export const backupTable = z.object({ table: z.string(), columns: z.array(z.string()).min(1) });
export type BackupTable = z.output<typeof backupTable>;

/** A file without this line is incomplete. */
export const backupEnd = z.object({ end: z.literal(true), rows: z.int() });

/** Overrides the database's settings. */
export const PLAIN_TEXTS =
  "set datestyle = 'ISO, YMD'; set intervalstyle = 'postgres'; set timezone = 'UTC'; set extra_float_digits = 3; " +
  "set client_encoding = 'UTF8'; set statement_timeout = 0; set idle_in_transaction_session_timeout = 0";

export const quotedName = (name: string): string => `"${name.replaceAll('"', '""')}"`;

export const columnsText = ({ columns }: BackupTable): string => columns.map(quotedName).join(", ");

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
