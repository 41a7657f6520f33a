import type { Database } from "../database/database.ts";
import type { Coverage, ElementCache, ThreadElements } from "./element-cache.ts";
import { readParts, readTuple, type CheckpointRow, type ReadParts } from "./reads.ts";
import { LINE } from "./repository.ts";
import { parseRowText, type TaskWrites } from "./row-text.ts";
import type { ShapeBook } from "./shapes.ts";
import { toSegments } from "./segments.ts";
import type { ValueRecord } from "./values.ts";
import type { CheckpointBody } from "./versions.ts";

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

export interface CheckpointPlace {
  threadId: string;
  checkpointNs: string;
  /** Undefined: the newest. */
  checkpointId: string | undefined;
}

/** Told of a row that can't be read, and why: it must not fail those beside it. */
export type OnUnreadable = (row: CheckpointRow, error: unknown) => void;

/** A second fetch is only needed if ranges that are remembered apart had to be joined. */
const FETCHES_AT_MOST = 3;

/** Reads checkpoints with what they refer to; the process's memory saves what it already holds. */
export class CheckpointReader {
  constructor(
    private readonly database: Database,
    private readonly cache: ElementCache,
    private readonly shapes: ShapeBook,
  ) {}

  /** One checkpoint, in one statement. */
  async read(place: CheckpointPlace): Promise<LoadedCheckpoint | undefined> {
    const elements = this.cache.thread(place.threadId);
    const found = await readTuple(this.database, place, elements.coverage());
    if (found === undefined) return undefined;
    addParts(elements, found);
    const [loaded] = await this.complete([{ ...this.parse(found.row), elements }]);
    return loaded;
  }

  /**
   * Rows that were read without what they refer to: one more statement, however many threads they are of. `only`: the
   * channels that are of interest. A row that can't be read is left out and told to `onUnreadable`; without that it is
   * thrown.
   */
  async load(
    rows: readonly CheckpointRow[],
    only?: ReadonlySet<string>,
    onUnreadable?: OnUnreadable,
  ): Promise<LoadedCheckpoint[]> {
    const threads = new Map<string, ThreadElements>();
    for (const { thread_id: threadId } of rows) {
      if (!threads.has(threadId)) threads.set(threadId, this.cache.thread(threadId));
    }
    return await this.complete(
      rows.flatMap((row) => {
        const elements = threads.get(row.thread_id);
        if (elements === undefined) return [];
        try {
          return { ...this.parse(row, only), elements };
        } catch (error) {
          if (onUnreadable === undefined) throw error;
          onUnreadable(row, error);
          return [];
        }
      }),
    );
  }

  private parse(row: CheckpointRow, only?: ReadonlySet<string>): Omit<LoadedCheckpoint, "elements"> {
    const { body, channels, writes } = parseRowText(row.record, this.shapes.parse(row.shape), row.segments);
    this.shapes.markStored(row.shape_hash);
    return {
      row,
      body,
      channels: only === undefined ? channels : channels.filter(([channel]) => only.has(channel)),
      writes: parseWrites([...writes, ...row.writes]),
    };
  }

  /** Fetches what is missing: usually nothing after `read`, all in one statement after `load`. */
  private async complete(parsed: LoadedCheckpoint[]): Promise<LoadedCheckpoint[]> {
    const ofThread = new Map<string, LoadedCheckpoint[]>();
    for (const checkpoint of parsed) {
      const known = ofThread.get(checkpoint.row.thread_id);
      if (known === undefined) ofThread.set(checkpoint.row.thread_id, [checkpoint]);
      else known.push(checkpoint);
    }
    for (let round = 0; round < FETCHES_AT_MOST; round++) {
      const missing = new Map<string, Coverage>();
      for (const [threadId, checkpoints] of ofThread) {
        const wanted = findMissing(checkpoints);
        if (wanted.lists.length > 0 || wanted.contents.length > 0) missing.set(threadId, wanted);
      }
      if (missing.size === 0) break;
      const found = await readParts(this.database, missing);
      for (const [threadId, parts] of found) {
        const elements = ofThread.get(threadId)?.[0]?.elements;
        if (elements !== undefined) addParts(elements, parts);
      }
    }
    return parsed;
  }
}

/** What rows of one thread refer to and the process doesn't remember. */
const findMissing = (parsed: readonly LoadedCheckpoint[]): Coverage => {
  const ranges = new Map<number, { from: number; to: number }>();
  const contents = new Set<string>();
  for (const { channels, writes, elements } of parsed) {
    const wantContent = (hash: string): void => {
      if (!elements.hasContent(hash)) contents.add(hash);
    };
    for (const { c, l } of [...channels.map(([, record]) => record), ...writes.map(({ record }) => record)]) {
      if (c !== undefined) wantContent(c);
      for (const { list, from, to } of (l ?? []).flatMap(toSegments)) {
        if (elements.has(list, from, to)) continue;
        const range = ranges.get(list);
        ranges.set(list, { from: Math.min(range?.from ?? from, from), to: Math.max(range?.to ?? to, to) });
      }
    }
  }
  return {
    lists: [...ranges.keys()],
    starts: [...ranges.values()].map(({ from }) => from),
    ends: [...ranges.values()].map(({ to }) => to),
    contents: [...contents],
  };
};

const addParts = (elements: ThreadElements, { runs, contents }: ReadParts): void => {
  for (const run of runs) elements.addRun(run);
  for (const { hash, text } of contents) elements.addContent(hash, text);
};

/**
 * Every write begins with its index. An earlier version looked the index up by the channel's name, and for `constructor` it
 * stored the text of a function: no checkpoint with such a write could be read.
 */
const WRITE = /^-?\d+,/;

/** The writes of the tasks, those of several runs put together as `merge_writes` in the database does it. */
const parseWrites = (writes: readonly TaskWrites[]): LoadedWrite[] => {
  if (writes.length === 0) return [];
  const tasks = new Map<string, Map<number, LoadedWrite>>();
  for (const [taskId, text] of writes) {
    let task = tasks.get(taskId);
    if (task === undefined) tasks.set(taskId, (task = new Map<number, LoadedWrite>()));
    for (const line of text.split(LINE)) {
      if (!WRITE.test(line)) continue;
      const [index, channel, record] = JSON.parse(`[${line}]`) as [number, string, ValueRecord];
      if (index < 0 || !task.has(index)) task.set(index, { taskId, index, channel, record });
    }
  }
  return [...tasks]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([, task]) => [...task.values()].sort((one, other) => one.index - other.index));
};
