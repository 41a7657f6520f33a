import type { Queryable } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import { setProperty } from "../../platform/lib/properties.ts";
import { referencesIn } from "../values/large-strings.ts";
import type { CheckpointReader } from "./reader.ts";
import { readThread, storedWritesOf } from "./rows.ts";
import type { ThreadStorage } from "./types.ts";

const BYTES_OF_HASH = 16;
/** Index: checkpoint_contents_pkey. */
const READ_CONTENT_SIZES = statement(
  { threadId: "uuid" },
  (sql) => `select hash,
    coalesce(object_bytes, octet_length(content)) + ${BYTES_OF_HASH} * coalesce(cardinality(contents), 0) as bytes, contents::text[] as contents
  from threadloom.checkpoint_contents where thread_id = ${sql.threadId}`,
);

interface ContentSize {
  hash: string;
  bytes: number;
  contents: string[] | null;
}

/**
 * Values in a checkpoint's row count as channel values, the rest of the row as the checkpoint's. A content of several
 * channels counts once, for the first channel by name.
 */
export const measureThread = async (
  queryable: Queryable,
  key: string,
  threadId: string,
  reader: CheckpointReader,
): Promise<ThreadStorage> => {
  const sizes = await READ_CONTENT_SIZES.query<ContentSize>(queryable, { threadId: key });
  const contents = new Map(sizes.map((size) => [size.hash, size]));
  /** The distinct texts of each channel. */
  const channels = new Map<string, Set<string>>();
  const writes = { count: 0, bytes: 0 };
  let [rows, rowBytes, inlineBytes] = [0, 0, 0];
  for (const row of await readThread(queryable, key)) {
    const { channels: texts, row: opened } = reader.texts(row);
    rows += 1;
    rowBytes += Buffer.byteLength(row.record) + Buffer.byteLength(row.metadata);
    writes.count += opened.writes.length;
    for (const text of storedWritesOf(row)) writes.bytes += Buffer.byteLength(text);
    for (const [channel, text] of texts) {
      inlineBytes += Buffer.byteLength(text);
      channels.set(channel, (channels.get(channel) ?? new Set()).add(text));
    }
  }
  const counted = new Set<string>();
  const bytesBelow = (text: string): number => {
    let bytes = 0;
    const visit = (hash: string): void => {
      const content = contents.get(hash);
      if (content === undefined || counted.has(hash)) return;
      counted.add(hash);
      bytes += content.bytes;
      content.contents?.forEach(visit);
    };
    referencesIn(text).forEach(visit);
    return bytes;
  };
  const byChannel: ThreadStorage["channel_values"]["by_channel"] = {};
  for (const [channel, texts] of [...channels].sort(([one], [other]) => (one < other ? -1 : 1))) {
    let bytes = 0;
    for (const text of texts) bytes += Buffer.byteLength(text) + bytesBelow(text);
    setProperty(byChannel, channel, { versions: texts.size, bytes });
  }
  const valueBytes = inlineBytes + sizes.reduce((sum, { bytes }) => sum + bytes, 0);
  const checkpointBytes = rowBytes - inlineBytes;
  return {
    thread_id: threadId,
    total_bytes: checkpointBytes + valueBytes + writes.bytes,
    checkpoints: { count: rows, bytes: checkpointBytes },
    channel_values: {
      count: [...channels.values()].reduce((sum, { size }) => sum + size, 0),
      bytes: valueBytes,
      by_channel: byChannel,
    },
    pending_writes: writes,
  };
};
