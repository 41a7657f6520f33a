import { LARGE_ANSWER_BYTES, type WhenLarge } from "../../../platform/lib/large-answers.ts";
import type { Database } from "../../../platform/database/database.ts";
import type { ElementCache, ThreadElements } from "../lists/element-cache.ts";
import { readParts, readCheckpoint, type ReadParts, type WantedParts } from "./part-statements.ts";
import { decryptRow, type CheckpointRow } from "./row-statements.ts";
import { LINE } from "../rows/separators.ts";
import { parseRowText, type TaskWrites } from "../rows/row-text.ts";
import type { KnownShapes } from "../rows/known-shapes.ts";
import { toSegments } from "../lists/segments.ts";
import type { ValueRecord } from "../rows/stored-value.ts";
import type { CheckpointBody } from "../rows/checkpoint-body.ts";

/** A row with its texts parsed; everything that its records refer to is in `elements`. */
export interface LoadedCheckpoint {
  row: CheckpointRow;
  body: CheckpointBody;
  channels: Array<[channel: string, record: ValueRecord]>;
  writes: LoadedWrite[];
  elements: ThreadElements;
}

export interface LoadedWrite {
  taskId: string;
  index: number;
  channel: string;
  record: ValueRecord;
}

/** Which stored checkpoint is meant. */
export interface CheckpointAddress {
  /** The key of the thread, see thread-key.ts. */
  threadId: string;
  checkpointNs: string;
  /** Undefined: the newest. */
  checkpointId: string | undefined;
}

/** A row whose text can't be read: it must not fail those beside it. */
export interface UnreadableRow {
  row: CheckpointRow;
  error: unknown;
}

export interface LoadOptions {
  /** The channels that are of interest; all of them if left out. */
  only?: ReadonlySet<string> | undefined;
  /** Leaves the writes of tasks out. */
  withoutWrites?: boolean;
  /** False: what is read is kept no longer than the caller keeps it, for who goes through many threads once. */
  remember?: boolean;
  /** Awaited once, before the first checkpoint is fetched that is large, or handed out that is made of much. */
  whenLarge?: WhenLarge | undefined;
}

/** Of trees alone, see element-cache.ts: too much is reserved where their texts were sent before. */
const CACHED_BYTES_PER_CHARACTER = 2;
/** What several checkpoints refer to is fetched until it is so large: memory must not grow with what is asked for. */
const GROUP_BYTES = 1024 * 1024;
/** A second fetch is only needed if ranges that are remembered apart had to be joined. */
const FETCHES_AT_MOST = 3;

/** Reads checkpoints with what they refer to; the process's memory saves what it already holds. */
export class CheckpointReader {
  constructor(
    private readonly database: Database,
    private readonly cache: ElementCache,
    private readonly shapes: KnownShapes,
  ) {}

  /**
   * One checkpoint, in one statement; in a second one if it is large and `whenLarge` waits for room. Between the two it
   * may be pruned, so that one reads it anew.
   */
  async read(address: CheckpointAddress, whenLarge?: WhenLarge): Promise<LoadedCheckpoint | undefined> {
    const elements = this.cache.thread(address.threadId);
    let found = await readCheckpoint(this.database, address, elements.coverage(), whenLarge !== undefined);
    if (found !== undefined && whenLarge !== undefined) {
      const bytes = found.heldBack + rememberedBytes(elements);
      if (bytes > LARGE_ANSWER_BYTES) await whenLarge(bytes);
      if (found.heldBack > 0) found = await readCheckpoint(this.database, address, elements.coverage());
    }
    if (found === undefined) return undefined;
    addParts(elements, found);
    const loaded = { ...this.parse(found.row), elements };
    await this.fetch([loaded], false);
    return loaded;
  }

  /**
   * Rows that were read without what they refer to, in their order. That is fetched in one statement, however many
   * threads they are of, until it has a megabyte; then, when the caller comes for them, for those that are left. One
   * that is larger is fetched alone, when `whenLarge` has found room for it.
   */
  async *load(
    rows: readonly CheckpointRow[],
    { only, withoutWrites = false, remember = true, whenLarge }: LoadOptions = {},
  ): AsyncGenerator<LoadedCheckpoint | UnreadableRow, void, undefined> {
    let left = rows.map((row) => this.tryToParse(row, only, withoutWrites));
    let isBounded = whenLarge !== undefined;
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
      const { end, heldBack } = await this.fetch(group, isBounded);
      for (const checkpoint of group.slice(0, end)) {
        const bytes = "error" in checkpoint ? 0 : rememberedBytes(checkpoint.elements);
        if (isBounded && bytes > LARGE_ANSWER_BYTES) {
          await whenLarge?.(bytes);
          isBounded = false;
        }
        yield checkpoint;
      }
      left = left.slice(end);
      if (heldBack === 0) continue;
      await whenLarge?.(heldBack);
      isBounded = false;
    }
  }

  private tryToParse(
    row: CheckpointRow,
    only: ReadonlySet<string> | undefined,
    withoutWrites: boolean,
  ): ParsedRow | UnreadableRow {
    try {
      return this.parse(row, only, withoutWrites);
    } catch (error) {
      return { row, error };
    }
  }

  private parse(encrypted: CheckpointRow, only?: ReadonlySet<string>, withoutWrites = false): ParsedRow {
    const row = decryptRow(encrypted);
    const { body, channels, writes } = parseRowText(row.record, this.shapes.parse(row.shape), row.segments);
    this.shapes.markStored(row.shape_hash);
    return {
      row,
      body,
      channels: only === undefined ? channels : channels.filter(([channel]) => only.has(channel)),
      writes: withoutWrites ? [] : parseWrites([...writes, ...row.writes]),
    };
  }

  /**
   * Fetches what is missing: usually nothing after `read`, all in one statement after `load`. `end`: how many of the
   * checkpoints, from the first on, are complete. That is at least one, unless `isBounded`: then what is large is only
   * weighed, and `heldBack` is what the first of the others needs.
   */
  private async fetch(
    group: ReadonlyArray<LoadedCheckpoint | UnreadableRow>,
    isBounded: boolean,
  ): Promise<{ end: number; heldBack: number }> {
    let end = group.length;
    let heldBack = 0;
    for (let round = 0; round < FETCHES_AT_MOST; round++) {
      const wanted = findMissing(group.slice(0, end));
      if (wanted.ranges.length === 0 && wanted.contents.length === 0) break;
      const found = await readParts(this.database, wanted, { bytesAtMost: GROUP_BYTES, isBounded });
      const { parts, leftOut, bytesOfFirst } = found;
      const ofThread = new Map(parts);
      const given = new Set<string>();
      for (const checkpoint of group) {
        if ("error" in checkpoint || given.has(checkpoint.row.thread_id)) continue;
        given.add(checkpoint.row.thread_id);
        const itsParts = ofThread.get(checkpoint.row.thread_id);
        if (itsParts !== undefined) addParts(checkpoint.elements, itsParts);
      }
      end = leftOut ?? end;
      if (isBounded && bytesOfFirst > GROUP_BYTES) heldBack = bytesOfFirst;
    }
    return { end, heldBack };
  }
}

type ParsedRow = Omit<LoadedCheckpoint, "elements">;

const rememberedBytes = (elements: ThreadElements): number => elements.byteCount / CACHED_BYTES_PER_CHARACTER;

/**
 * What checkpoints refer to and the process doesn't remember. The ordinal of each part is that of the first
 * checkpoint that needs it.
 */
const findMissing = (group: ReadonlyArray<LoadedCheckpoint | UnreadableRow>): WantedParts => {
  const wanted: WantedParts = { ranges: [], contents: [] };
  /** By thread and list: what is wanted already, without a gap. */
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

/** The writes of the tasks, those of several runs put together as `merge_writes` in the database does it. */
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
