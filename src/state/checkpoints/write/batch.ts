import type { Encryption } from "../../../platform/database/database.ts";
import type { ThreadElements } from "../lists/element-cache.ts";
import type { ThreadLists } from "../lists/thread-lists.ts";
import type { NewElements } from "../lists/stored-list.ts";
import type { Segment } from "../lists/segments.ts";
import type { Batch, NewCheckpoint, NewContent, NewShape, NewWrites } from "../rows/new-rows.ts";
import { composeRowText, writesText, type StoredWrites } from "../rows/row-text.ts";
import { rowReferences, type StoredValue } from "../rows/stored-value.ts";
import { storeWritten, type WrittenValue } from "../rows/value-writer.ts";

/** The text is made when the statement is sent, because lists may move before. */
export interface QueuedCheckpoint extends Omit<NewCheckpoint, "record" | "segments" | "contents"> {
  body: string;
  channelNames: string[];
  channels: Map<string, StoredValue>;
}

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

/**
 * One row per key, because a statement can't write a row twice. Each try rebuilds the rows, because lists may have
 * moved.
 */
export const toBatch = (
  items: readonly QueueItem[],
  threadLists: ThreadLists,
  committed: ThreadElements,
  encryption: Encryption,
): Batch => {
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
  const elements = joinNeighbours(items.flatMap((item) => item.elements));
  const contents = items.flatMap((item) => item.contents);
  // Elements of a later statement may never be stored.
  const exists = ({ list, from, to }: Segment): boolean =>
    committed.has(list, from, to) ||
    elements.some(
      (added) => added.list === list && added.position <= from && added.position + added.texts.length >= to,
    );
  const store = (written: WrittenValue): StoredValue =>
    storeWritten(written, { threadLists, exists, contents, encryption });
  for (const { channels } of checkpoints.values()) closeInside(elements, channels.values());

  const together = new Map<QueuedCheckpoint, Array<[taskId: string, writes: StoredWrites]>>();
  const apart: NewWrites[] = [];
  for (const { writes: written, ...task } of tasks.values()) {
    const writes = new Map<number, [channel: string, value: StoredValue]>();
    for (const [index, [channel, value]] of written) writes.set(index, [channel, store(value)]);
    const checkpoint = checkpoints.get(JSON.stringify([task.checkpointNs, task.checkpointId]));
    // A separate row, so that a rollback can delete another run's writes alone.
    if (checkpoint === undefined || checkpoint.runId !== task.runId) {
      const values = [...writes.values()].map(([, value]) => value);
      apart.push({ ...task, writes: writesText(writes), ...rowReferences(values) });
    } else together.set(checkpoint, [...(together.get(checkpoint) ?? []), [task.taskId, writes]]);
  }
  return {
    elements,
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
 * The primary key detects two writers that append at the same position, but only at the start of a row. A writer that
 * continues inside a row (a fork) must make its own list.
 */
const closeInside = (elements: Batch["elements"], values: Iterable<StoredValue>): void => {
  for (const { lists } of values) {
    for (const segment of lists.flatMap(({ segments }) => segments)) {
      segment.closed ||= elements.some(
        ({ list, position, texts }) =>
          list === segment.list && position < segment.to && segment.to < position + texts.length,
      );
    }
  }
};

/** A row and its index entry take 120 bytes. */
const joinNeighbours = (elements: readonly NewElements[]): Batch["elements"] => {
  const joined: Batch["elements"] = [];
  for (const { list, position, texts } of elements) {
    const before = joined.find((one) => one.list === list && one.position + one.texts.length === position);
    if (before === undefined) joined.push({ list, position, texts: texts.slice() });
    else before.texts.push(...texts);
  }
  return joined;
};

/** As the database function `merge_writes` does. */
const mergeWrites = (before: QueuedWrites, after: QueuedWrites): QueuedWrites => {
  const writes = new Map(before.writes);
  for (const [index, write] of after.writes) if (index < 0 || !writes.has(index)) writes.set(index, write);
  return { ...before, writes };
};
