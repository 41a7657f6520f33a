/** From what a saver was given to the rows of one statement. */

import type { ThreadElements } from "../lists/element-cache.ts";
import type { ListBook, NewElements } from "../lists/lists.ts";
import type { Segment } from "../lists/segments.ts";
import type { Batch, NewCheckpoint, NewContent, NewShape, NewWrites } from "../rows/new-rows.ts";
import { composeRowText, writesText, type StoredWrites } from "../rows/row-text.ts";
import { rowReferences, storeWritten, type StoredValue, type WrittenValue } from "../rows/values.ts";

/** A checkpoint to store. Its values are written out when the statement is sent, for their lists may be moved. */
export interface QueuedCheckpoint extends Omit<NewCheckpoint, "record" | "segments" | "contents"> {
  /** See versions.ts. */
  body: string;
  channelNames: string[];
  channels: Map<string, StoredValue>;
}

/** What a task wrote: by index, the channel and the value. */
export interface QueuedWrites extends Omit<NewWrites, "writes" | "segments" | "contents"> {
  writes: Map<number, [channel: string, value: WrittenValue]>;
}

export interface QueueItem {
  checkpoint?: QueuedCheckpoint;
  writes?: QueuedWrites;
  elements: NewElements[];
  contents: NewContent[];
  shapes: NewShape[];
}

/** What a batch may refer to beside what it stores itself. */
export interface BatchSurroundings {
  book: ListBook;
  /** Committed ones. */
  elements: ThreadElements;
}

/**
 * One row per key: a statement can't write a row twice. Made anew each time the statement is sent, for the lists may
 * have been moved.
 */
export const toBatch = (items: readonly QueueItem[], { book, elements }: BatchSurroundings): Batch => {
  const checkpoints = new Map<string, QueuedCheckpoint>();
  const tasks = new Map<string, QueuedWrites>();
  for (const { checkpoint, writes } of items) {
    if (checkpoint !== undefined) {
      checkpoints.set(JSON.stringify([checkpoint.checkpointNs, checkpoint.checkpointId]), checkpoint);
    }
    if (writes !== undefined) {
      const key = JSON.stringify([writes.checkpointNs, writes.checkpointId, writes.taskId]);
      const before = tasks.get(key);
      tasks.set(key, before === undefined ? writes : mergeWrites(before, writes));
    }
  }
  const runs = joinRuns(items.flatMap((item) => item.elements));
  const contents = items.flatMap((item) => item.contents);
  // Nothing may refer to what only a later statement brings: it might never come.
  const isThere = ({ list, from, to }: Segment): boolean =>
    elements.has(list, from, to) ||
    runs.some((run) => run.list === list && run.position <= from && run.position + run.texts.length >= to);
  const store = (written: WrittenValue): StoredValue => storeWritten(written, { book, isThere, contents });
  for (const { channels } of checkpoints.values()) closeInside(runs, channels.values());

  const together = new Map<QueuedCheckpoint, Array<[taskId: string, writes: StoredWrites]>>();
  const apart: NewWrites[] = [];
  for (const { writes: written, ...task } of tasks.values()) {
    const writes = new Map<number, [channel: string, value: StoredValue]>();
    for (const [index, [channel, value]] of written) writes.set(index, [channel, store(value)]);
    const checkpoint = checkpoints.get(JSON.stringify([task.checkpointNs, task.checkpointId]));
    // What another run wrote must be there to be taken back alone.
    if (checkpoint === undefined || checkpoint.runId !== task.runId) {
      const values = [...writes.values()].map(([, value]) => value);
      apart.push({ ...task, writes: writesText(writes), ...rowReferences(values) });
    } else together.set(checkpoint, [...(together.get(checkpoint) ?? []), [task.taskId, writes]]);
  }
  return {
    elements: runs,
    shapes: distinctShapes(items),
    checkpoints: [...checkpoints.values()].map((checkpoint) => {
      const { body, channelNames, channels, ...rest } = checkpoint;
      const writes = together.get(checkpoint) ?? [];
      return { ...rest, ...composeRowText({ body, channelNames, channels, writes }) };
    }),
    writes: apart,
    contents,
  };
};

/**
 * Two that append at the same position collide on the primary key of the rows, and so have to begin rows. A list that
 * ends inside a row is closed instead: who goes on from there (a fork) makes a list of its own.
 */
const closeInside = (runs: Batch["elements"], values: Iterable<StoredValue>): void => {
  for (const { lists } of values) {
    for (const segment of lists.flatMap(({ segments }) => segments)) {
      segment.closed ||= runs.some(
        ({ list, position, texts }) =>
          list === segment.list && position < segment.to && segment.to < position + texts.length,
      );
    }
  }
};

/** A run that goes on where another ends becomes one row with it: a row and its index entry take 120 bytes. */
const joinRuns = (runs: readonly NewElements[]): Batch["elements"] => {
  const joined: Batch["elements"] = [];
  for (const { list, position, texts } of runs) {
    const before = joined.find((run) => run.list === list && run.position + run.texts.length === position);
    if (before === undefined) joined.push({ list, position, texts: texts.slice() });
    else before.texts.push(...texts);
  }
  return joined;
};

/** In one order for all writers, so that two that insert the same ones don't wait for each other. */
const distinctShapes = (items: readonly QueueItem[]): NewShape[] => {
  const shapes = new Map(items.flatMap((item) => item.shapes.map((shape) => [shape.hash, shape])));
  return [...shapes.values()].sort((one, other) => (one.hash < other.hash ? -1 : 1));
};

/** As `merge_writes` in the database does it. */
const mergeWrites = (before: QueuedWrites, after: QueuedWrites): QueuedWrites => {
  const writes = new Map(before.writes);
  for (const [index, write] of after.writes) if (index < 0 || !writes.has(index)) writes.set(index, write);
  return { ...before, writes };
};
