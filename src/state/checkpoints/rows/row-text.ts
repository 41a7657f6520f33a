/**
 * Writes of the same statement are part of the row, and share text with the channels. Later writes are rows of
 * `checkpoint_writes`.
 *
 *   [v, ts, versions of channels, versions seen by nodes, channels] GROUP task UNIT line LINE line GROUP task …
 *
 * Versions and channels have the order of the shape's names; 0 is a channel without a value. A list holds the number of
 * its segments; the row has the segments in order. A line is `index,channel,record`, or `index,channel,@start,length`
 * for a value in the first part. A checkpoint that is stored again keeps its earlier text after OLDER, because the
 * earlier writes still count.
 */

import { GROUP, LINE, OLDER, UNIT } from "./separators.ts";
import { recordText, rowReferences, type StoredValue, type ValueRecord } from "./stored-value.ts";
import { parseBody, type CheckpointBody, type Shape } from "./checkpoint-body.ts";

export type TaskWrites = [taskId: string, lines: string];

export type StoredWrites = ReadonlyMap<number, [channel: string, value: StoredValue]>;

/** A reference takes some ten characters. */
const WORTH_A_REFERENCE_CHARACTERS = 32;

interface NewRowText {
  body: string;
  channelNames: readonly string[];
  channels: ReadonlyMap<string, StoredValue>;
  writes: ReadonlyArray<[taskId: string, writes: StoredWrites]>;
}

export const composeRowText = ({
  body,
  channelNames,
  channels,
  writes,
}: NewRowText): { record: string; segments: number[]; contents: string[] } => {
  const ordered = channelNames.flatMap((channel) => channels.get(channel) ?? []);
  const texts = channelNames.map((channel) => {
    const value = channels.get(channel);
    return value === undefined ? "0" : channelText(value);
  });
  const first = `[${body},[${texts.join(",")}]]`;
  const tasks = writes.map(([taskId, lines]) => `${taskId}${UNIT}${writesText(lines, first)}`);
  const written = writes.flatMap(([, lines]) => [...lines.values()].map(([, value]) => value));
  return { record: [first, ...tasks].join(GROUP), ...rowReferences([...ordered, ...written]) };
};

const channelText = (value: StoredValue): string => recordText(value, ({ segments }) => segments.length);

/** Replaces values that occur in `source` by references. */
export const writesText = (writes: StoredWrites, source = ""): string =>
  [...writes]
    .sort(([one], [other]) => one - other)
    .map(([index, [channel, value]]) => {
      const { text, hash, lists } = value;
      const name = `${index},${JSON.stringify(channel)}`;
      if (text !== undefined && hash === undefined && lists.length === 0) {
        const start = text.length < WORTH_A_REFERENCE_CHARACTERS ? -1 : source.indexOf(text);
        if (start >= 0) return `${name},@${start},${text.length}`;
      }
      return `${name},${recordText(value)}`;
    })
    .join(LINE);

interface RowText {
  body: CheckpointBody;
  channels: Array<[channel: string, record: ValueRecord]>;
  writes: TaskWrites[];
}

/** `segments` as flat triples. */
export const parseRowText = (text: string, shape: Shape, segments: readonly number[]): RowText => {
  const [first = ""] = newestOf(text).split(GROUP, 1);
  const body = JSON.parse(first) as unknown[];
  const records = body.pop() as Array<CountedRecord | 0>;
  const [names, , unversioned = []] = shape;
  const channels: RowText["channels"] = [];
  let taken = 0;
  for (const [index, record] of records.entries()) {
    if (record === 0) continue;
    const { l, ...rest } = record;
    const lists = l?.map((count) => segments.slice(taken, (taken += count * NUMBERS_PER_SEGMENT)));
    const name = names[index] ?? unversioned[index - names.length] ?? "";
    channels.push([name, lists === undefined ? rest : { ...rest, l: lists }]);
  }
  return {
    body: parseBody(body, shape),
    channels,
    writes: text.split(OLDER).reverse().flatMap(expandWrites),
  };
};

const NUMBERS_PER_SEGMENT = 3;
type CountedRecord = Omit<ValueRecord, "l"> & { l?: number[] };

const newestOf = (text: string): string => {
  const end = text.indexOf(OLDER);
  return end < 0 ? text : text.slice(0, end);
};

/**
 * A record ends with a brace, a reference with a number. With the flag `m`, `$` would also match before U+2028, which
 * JSON may contain.
 */
const REFERENCE = /,@(\d+),(\d+)(?=\n|$)/g;

const expandWrites = (version: string): TaskWrites[] =>
  writesOf(version).map(([taskId, lines]) => [
    taskId,
    lines.replace(REFERENCE, (_, start: string, length: string) => {
      return `,{"v":${version.slice(Number(start), Number(start) + Number(length))}}`;
    }),
  ]);

export const writesOf = (text: string): TaskWrites[] =>
  text
    .split(OLDER)
    .flatMap((version) => version.split(GROUP).slice(1))
    .map(parseTaskWrites);

/** SQL: the number of writes in `c.record`. */
export const COUNT_WRITES_OF_C = `(
    length(c.record) - length(replace(c.record, E'\\x1d', ''))
    + length(c.record) - length(replace(c.record, E'\\n', '')))`;

export const parseTaskWrites = (text: string): TaskWrites => {
  const end = text.indexOf(UNIT);
  return [text.slice(0, end), text.slice(end + 1)];
};
