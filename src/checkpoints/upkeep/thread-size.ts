import type { Queryable } from "../../database/database.ts";
import { setProperty } from "../../values/properties.ts";
import type { ThreadStorage } from "../types.ts";
import { LINE } from "../rows/separators.ts";
import { parseRowText, writesOf } from "../rows/row-text.ts";
import type { KnownShapes } from "../rows/known-shapes.ts";
import { toSegments } from "../lists/segments.ts";

const READ_RECORDS = `select c.record, array_to_string(c.segments, ',') as segments, s.shape,
    octet_length(c.record) + octet_length(coalesce(c.metadata_text, c.metadata::text)) as bytes
  from threadloom.checkpoints c join threadloom.checkpoint_shapes s on s.hash = c.shape where c.thread_id = $1::uuid`;
const READ_ELEMENT_SIZES = `select list_id, position, count, octet_length(elements) as bytes
  from threadloom.checkpoint_elements where thread_id = $1::uuid and count > 0`;
const READ_CONTENT_SIZES = `select hash, octet_length(content) as bytes
  from threadloom.checkpoint_contents where thread_id = $1::uuid`;
const READ_WRITE_SIZES = `select coalesce(sum(array_length(string_to_array(writes, E'\\n'), 1)), 0)::integer as count,
    coalesce(sum(octet_length(writes)), 0)::integer as bytes
  from threadloom.checkpoint_writes where thread_id = $1::uuid`;

/**
 * What a thread occupies. Values that stand in a checkpoint's row count as channel values, the rest of the row as
 * the checkpoint's. An element that several channels hold counts once, for the first of them by name.
 */
export const measureThread = async (
  queryable: Queryable,
  key: string,
  threadId: string,
  shapes: KnownShapes,
): Promise<ThreadStorage> => {
  const rows = await queryable.query<{
    record: string;
    segments: string | null;
    shape: string;
    bytes: number;
  }>(READ_RECORDS, [key]);
  const elements = await queryable.query<{ list_id: string; position: number; count: number; bytes: number }>(
    READ_ELEMENT_SIZES,
    [key],
  );
  const contents = await queryable.query<{ hash: string; bytes: number }>(READ_CONTENT_SIZES, [key]);
  const [writes = { count: 0, bytes: 0 }] = await queryable.query<{ count: number; bytes: number }>(
    READ_WRITE_SIZES,
    [key],
  );

  /** By channel: the distinct values, as they stand in the rows, and the lists and contents that they name. */
  const channels = new Map<
    string,
    { texts: Set<string>; ranges: Map<number, number[]>; hashes: Set<string> }
  >();
  let inlineBytes = 0;
  for (const row of rows) {
    for (const [, lines] of writesOf(row.record)) {
      writes.count += lines.split(LINE).length;
      writes.bytes += Buffer.byteLength(lines);
      inlineBytes += Buffer.byteLength(lines);
    }
    const segments = row.segments?.split(",").map(Number) ?? [];
    for (const [channel, record] of parseRowText(row.record, shapes.parse(row.shape), segments).channels) {
      let seen = channels.get(channel);
      if (seen === undefined) {
        channels.set(channel, (seen = { texts: new Set(), ranges: new Map(), hashes: new Set() }));
      }
      const text = JSON.stringify(record);
      inlineBytes += Buffer.byteLength(text);
      if (seen.texts.has(text)) continue;
      seen.texts.add(text);
      if (record.c !== undefined) seen.hashes.add(record.c);
      for (const { list, from, to } of (record.l ?? []).flatMap(toSegments)) {
        const [first = from, stop = to] = seen.ranges.get(list) ?? [];
        seen.ranges.set(list, [Math.min(first, from), Math.max(stop, to)]);
      }
    }
  }

  const byChannel: ThreadStorage["channel_values"]["by_channel"] = {};
  const counted = new Set<unknown>();
  for (const [channel, { texts, ranges, hashes }] of [...channels].sort(([one], [other]) =>
    one < other ? -1 : 1,
  )) {
    let bytes = [...texts].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
    for (const element of elements) {
      const range = ranges.get(Number(element.list_id));
      const [first, stop] = range ?? [0, 0];
      if (
        counted.has(element) ||
        element.position >= (stop ?? 0) ||
        element.position + element.count <= (first ?? 0)
      )
        continue;
      counted.add(element);
      bytes += element.bytes;
    }
    for (const content of contents) {
      if (counted.has(content) || !hashes.has(content.hash)) continue;
      counted.add(content);
      bytes += content.bytes;
    }
    setProperty(byChannel, channel, { versions: texts.size, bytes });
  }
  const checkpointBytes = rows.reduce((sum, row) => sum + row.bytes, 0) - inlineBytes;
  const valueBytes = inlineBytes + [...elements, ...contents].reduce((sum, { bytes }) => sum + bytes, 0);
  return {
    thread_id: threadId,
    total_bytes: checkpointBytes + valueBytes + writes.bytes,
    checkpoints: { count: rows.length, bytes: checkpointBytes },
    channel_values: {
      count: Object.values(byChannel).reduce((sum, { versions }) => sum + versions, 0),
      bytes: valueBytes,
      by_channel: byChannel,
    },
    pending_writes: writes,
  };
};
