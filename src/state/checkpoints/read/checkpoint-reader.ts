import type { Queryable } from "../../../platform/database/database.ts";
import type { ElementCache, ThreadElements } from "../lists/element-cache.ts";
import {
  readCheckpoint,
  readParts,
  type CheckpointAddress,
  type ReadParts,
  type WantedParts,
} from "./part-statements.ts";
import { decryptRow, type CheckpointRow } from "./row-statements.ts";
import { LINE } from "../rows/separators.ts";
import { parseRowText, type TaskWrites } from "../rows/row-text.ts";
import type { KnownShapes } from "../rows/known-shapes.ts";
import { toSegments } from "../lists/segments.ts";
import type { ValueRecord } from "../rows/stored-value.ts";
import type { CheckpointBody } from "../rows/checkpoint-body.ts";

export interface LoadedCheckpoint {
  row: CheckpointRow;
  body: CheckpointBody;
  channels: Array<[channel: string, record: ValueRecord]>;
  /** The known ones of the graph. LangGraph puts their values together from the writes of ancestors. */
  deltaChannels: readonly string[];
  writes: LoadedWrite[];
  elements: ThreadElements;
}

export interface LoadedWrite {
  taskId: string;
  index: number;
  channel: string;
  record: ValueRecord;
}

/** An unreadable row must not fail other rows. */
export interface UnreadableRow {
  row: CheckpointRow;
  error: unknown;
}

interface LoadOptions {
  only?: ReadonlySet<string> | undefined;
  withoutWrites?: boolean;
  /** False: caches nothing, for scans of many threads. */
  remember?: boolean;
}

/** Memory must not grow with the number of requested checkpoints. */
const GROUP_BYTES = 1024 * 1024;
/** A further fetch only joins ranges that were cached separately. */
const FETCHES_AT_MOST = 3;

export class CheckpointReader {
  constructor(
    readonly database: Queryable,
    private readonly cache: ElementCache,
    readonly shapes: KnownShapes,
  ) {}

  async read(address: CheckpointAddress): Promise<LoadedCheckpoint | undefined> {
    const elements = this.cache.thread(address.threadId);
    const found = await readCheckpoint(this.database, address, elements.coverage());
    if (found === undefined) return undefined;
    addParts(elements, found);
    const loaded = { ...parseCheckpointRow(this, found.row), elements };
    await this.fetch([loaded]);
    return loaded;
  }

  /**
   * One statement fetches 1 MiB of parts for any number of threads, or one larger checkpoint; the next one runs when the
   * caller continues.
   */
  async *load(
    rows: readonly CheckpointRow[],
    { only, withoutWrites = false, remember = true }: LoadOptions = {},
  ): AsyncGenerator<LoadedCheckpoint | UnreadableRow, void, undefined> {
    let left = rows.map((row) => this.tryToParse(row, only, withoutWrites));
    while (left.length > 0) {
      const threads = new Map<string, ThreadElements>();
      const group: Array<LoadedCheckpoint | UnreadableRow> = left.map((parsed) => {
        if ("error" in parsed) return parsed;
        const key = parsed.row.thread_id;
        let elements = threads.get(key);
        if (elements === undefined) {
          elements = remember ? this.cache.thread(key) : this.cache.peek(key);
          threads.set(key, elements);
        }
        return { ...parsed, elements };
      });
      const end = await this.fetch(group);
      yield* group.slice(0, end);
      left = left.slice(end);
    }
  }

  private tryToParse(
    row: CheckpointRow,
    only: ReadonlySet<string> | undefined,
    withoutWrites: boolean,
  ): ParsedRow | UnreadableRow {
    try {
      return parseCheckpointRow(this, row, only, withoutWrites);
    } catch (error) {
      return { row, error };
    }
  }

  /** Returns the number of complete checkpoints from the start, at least 1. */
  private async fetch(group: ReadonlyArray<LoadedCheckpoint | UnreadableRow>): Promise<number> {
    let end = group.length;
    for (let round = 0; round < FETCHES_AT_MOST; round++) {
      const wanted = findMissing(group.slice(0, end));
      if (wanted.ranges.length === 0 && wanted.contents.length === 0) break;
      const { parts, leftOut } = await readParts(this.database, wanted, GROUP_BYTES);
      const ofThread = new Map(parts);
      const given = new Set<string>();
      for (const checkpoint of group) {
        if ("error" in checkpoint || given.has(checkpoint.row.thread_id)) continue;
        given.add(checkpoint.row.thread_id);
        const itsParts = ofThread.get(checkpoint.row.thread_id);
        if (itsParts !== undefined) addParts(checkpoint.elements, itsParts);
      }
      end = leftOut ?? end;
    }
    return end;
  }
}

type ParsedRow = Omit<LoadedCheckpoint, "elements">;

/** Without the parts that the row names. */
export const parseCheckpointRow = (
  { database, shapes }: { database: Queryable; shapes: KnownShapes },
  encrypted: CheckpointRow,
  only?: ReadonlySet<string>,
  withoutWrites = false,
): ParsedRow => {
  const row = decryptRow(database.encryption, encrypted);
  const shape = shapes.parse(row.shape);
  const { body, channels, writes } = parseRowText(row.record, shape, row.segments);
  shapes.markStored(row.shape_hash);
  return {
    row,
    body,
    channels: only === undefined ? channels : channels.filter(([channel]) => only.has(channel)),
    deltaChannels: shape[3] ?? [],
    writes: withoutWrites ? [] : parseWrites([...writes, ...row.writes]),
  };
};

/** A part has the ordinal of the first checkpoint that needs the part. */
const findMissing = (group: ReadonlyArray<LoadedCheckpoint | UnreadableRow>): WantedParts => {
  const wanted: WantedParts = { ranges: [], contents: [] };
  const ranges = new Map<string, { from: number; to: number }>();
  const hashes = new Set<string>();
  for (const [ordinal, checkpoint] of group.entries()) {
    if ("error" in checkpoint) continue;
    const { channels, writes, elements } = checkpoint;
    const threadId = checkpoint.row.thread_id;
    for (const { c, l } of [...channels.map(([, record]) => record), ...writes.map(({ record }) => record)]) {
      if (c !== undefined && !elements.hasContent(c) && !hashes.has(`${threadId} ${c}`)) {
        hashes.add(`${threadId} ${c}`);
        wanted.contents.push({ threadId, hash: c, ordinal });
      }
      for (const { list, from, to } of (l ?? []).flatMap(toSegments)) {
        if (elements.has(list, from, to)) continue;
        const range = ranges.get(`${threadId} ${list}`);
        if (range === undefined) {
          ranges.set(`${threadId} ${list}`, { from, to });
          wanted.ranges.push({ threadId, list, from, to, ordinal });
          continue;
        }
        if (from < range.from) wanted.ranges.push({ threadId, list, from, to: range.from, ordinal });
        if (to > range.to) wanted.ranges.push({ threadId, list, from: range.to, to, ordinal });
        range.from = Math.min(range.from, from);
        range.to = Math.max(range.to, to);
      }
    }
  }
  return wanted;
};

const addParts = (elements: ThreadElements, parts: ReadParts): void => {
  for (const added of parts.elements) elements.addElements(added);
  for (const { hash, text } of parts.contents) elements.addContent(hash, text);
};

/** Merges the writes of several runs as the database function `merge_writes` does. */
const parseWrites = (writes: readonly TaskWrites[]): LoadedWrite[] => {
  if (writes.length === 0) return [];
  const tasks = new Map<string, Map<number, LoadedWrite>>();
  for (const [taskId, text] of writes) {
    let task = tasks.get(taskId);
    if (task === undefined) tasks.set(taskId, (task = new Map<number, LoadedWrite>()));
    for (const line of text.split(LINE)) {
      const [index, channel, record] = JSON.parse(`[${line}]`) as [number, string, ValueRecord];
      if (index < 0 || !task.has(index)) task.set(index, { taskId, index, channel, record });
    }
  }
  return [...tasks]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([, task]) => [...task.values()].sort((one, other) => one.index - other.index));
};
