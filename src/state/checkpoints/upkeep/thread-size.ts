import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import { setProperty } from "../../../platform/lib/properties.ts";
import { toSegments } from "../lists/segments.ts";
import type { KnownShapes } from "../rows/known-shapes.ts";
import { parseRowText, writesOf } from "../rows/row-text.ts";
import { openRecord } from "../rows/encryption.ts";
import { LINE } from "../rows/separators.ts";
import type { ValueRecord } from "../rows/stored-value.ts";
import type { ThreadStorage } from "../types.ts";

const readOfThread = (select: string, condition = "true") =>
  statement({ threadId: "uuid" }, (sql) => `${select} where thread_id = ${sql.threadId} and ${condition}`);
const READ_RECORDS =
  readOfThread(`select c.checkpoint_ns, c.checkpoint_id, c.record, array_to_string(c.segments, ',') as segments, s.shape,
    octet_length(c.record) + octet_length(coalesce(c.metadata_text, c.metadata::text)) as bytes
  from threadloom.checkpoints c join threadloom.checkpoint_shapes s on s.hash = c.shape`);
const READ_ELEMENT_SIZES = readOfThread(
  `select list_id, position, count, octet_length(elements) as bytes, strings::text[] as strings
  from threadloom.checkpoint_elements`,
  "count > 0",
);
const READ_CONTENT_SIZES = readOfThread(
  `select hash, coalesce(object_bytes, octet_length(content)) as bytes, strings::text[] as strings
  from threadloom.checkpoint_contents`,
);
const READ_WRITE_SIZES =
  readOfThread(`select coalesce(sum(array_length(string_to_array(writes, E'\\n'), 1)), 0)::integer as count,
    coalesce(sum(octet_length(writes)), 0)::integer as bytes
  from threadloom.checkpoint_writes`);

interface RecordRow {
  checkpoint_ns: string;
  checkpoint_id: string;
  record: string;
  segments: string | null;
  shape: string;
  bytes: number;
}
interface ElementSize {
  list_id: string;
  position: number;
  count: number;
  bytes: number;
  strings: string[] | null;
}
interface ContentSize {
  hash: string;
  bytes: number;
  strings: string[] | null;
}
interface Total {
  count: number;
  bytes: number;
}

interface ChannelParts {
  texts: Set<string>;
  /** The first position and the one after the last. */
  ranges: Map<number, [first: number, stop: number]>;
  hashes: Set<string>;
}

/**
 * Values in a checkpoint's row count as channel values, the rest of the row as the checkpoint's. An element of several
 * channels counts once, for the first channel by name.
 */
export const measureThread = async (
  queryable: Queryable,
  key: string,
  threadId: string,
  shapes: KnownShapes,
): Promise<ThreadStorage> => {
  const rows = (await READ_RECORDS.query<RecordRow>(queryable, { threadId: key })).map((row) => ({
    ...row,
    record: openRecord(queryable.encryption, row.record, row),
  }));
  const elements = await READ_ELEMENT_SIZES.query<ElementSize>(queryable, { threadId: key });
  const contents = await READ_CONTENT_SIZES.query<ContentSize>(queryable, { threadId: key });
  const [writes = { count: 0, bytes: 0 }] = await READ_WRITE_SIZES.query<Total>(queryable, { threadId: key });

  const { channels, inlineBytes, inlineWrites } = partsOf(rows, shapes);
  const byChannel = bytesByChannel(channels, elements, contents);
  const checkpointBytes = rows.reduce((sum, row) => sum + row.bytes, 0) - inlineBytes - inlineWrites.bytes;
  const apartBytes = [...elements, ...contents].reduce((sum, { bytes }) => sum + bytes, 0);
  const valueBytes = inlineBytes + apartBytes;
  const writeBytes = writes.bytes + inlineWrites.bytes;
  return {
    thread_id: threadId,
    total_bytes: checkpointBytes + valueBytes + writeBytes,
    checkpoints: { count: rows.length, bytes: checkpointBytes },
    channel_values: {
      count: Object.values(byChannel).reduce((sum, { versions }) => sum + versions, 0),
      bytes: valueBytes,
      by_channel: byChannel,
    },
    pending_writes: { count: writes.count + inlineWrites.count, bytes: writeBytes },
  };
};

const partsOf = (
  rows: readonly RecordRow[],
  shapes: KnownShapes,
): { channels: Map<string, ChannelParts>; inlineBytes: number; inlineWrites: Total } => {
  const channels = new Map<string, ChannelParts>();
  const inlineWrites = { count: 0, bytes: 0 };
  let inlineBytes = 0;
  for (const row of rows) {
    for (const [, lines] of writesOf(row.record)) {
      inlineWrites.count += lines.split(LINE).length;
      inlineWrites.bytes += Buffer.byteLength(lines);
    }
    const segments = row.segments?.split(",").map(Number) ?? [];
    for (const [channel, record] of parseRowText(row.record, shapes.parse(row.shape), segments).channels) {
      let parts = channels.get(channel);
      if (parts === undefined) {
        channels.set(channel, (parts = { texts: new Set(), ranges: new Map(), hashes: new Set() }));
      }
      const text = JSON.stringify(record);
      inlineBytes += Buffer.byteLength(text);
      if (!parts.texts.has(text)) addParts(parts, text, record);
    }
  }
  return { channels, inlineBytes, inlineWrites };
};

const addParts = ({ texts, ranges, hashes }: ChannelParts, text: string, record: ValueRecord): void => {
  texts.add(text);
  if (record.c !== undefined) hashes.add(record.c);
  for (const { list, from, to } of (record.l ?? []).flatMap(toSegments)) {
    const [first, stop] = ranges.get(list) ?? [from, to];
    ranges.set(list, [Math.min(first, from), Math.max(stop, to)]);
  }
};

const bytesByChannel = (
  channels: ReadonlyMap<string, ChannelParts>,
  elements: readonly ElementSize[],
  contents: readonly ContentSize[],
): ThreadStorage["channel_values"]["by_channel"] => {
  const byChannel: ThreadStorage["channel_values"]["by_channel"] = {};
  const counted = new Set<ElementSize | ContentSize>();
  const byName = [...channels].sort(([one], [other]) => (one < other ? -1 : 1));
  for (const [channel, { texts, ranges, hashes }] of byName) {
    const isNamed = ({ list_id, position, count }: ElementSize): boolean => {
      const range = ranges.get(Number(list_id));
      return range !== undefined && position < range[1] && position + count > range[0];
    };
    const parts = [...elements.filter(isNamed), ...contents.filter(({ hash }) => hashes.has(hash))];
    const strings = new Set(parts.flatMap((part) => part.strings ?? []));
    const named = [...parts, ...contents.filter(({ hash }) => strings.has(hash))];
    let bytes = [...texts].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
    for (const part of named) {
      if (counted.has(part)) continue;
      counted.add(part);
      bytes += part.bytes;
    }
    setProperty(byChannel, channel, { versions: texts.size, bytes });
  }
  return byChannel;
};
