import type { RunnableConfig } from "@langchain/core/runnables";
import {
  maxChannelVersion,
  TASKS,
  type Checkpoint,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
} from "@langchain/langgraph-checkpoint";
import type { ValueClasses } from "../../values/classes.ts";
import { setProperty } from "../../../platform/lib/properties.ts";
import type { CheckpointReader, LoadedCheckpoint, LoadedWrite } from "./checkpoint-reader.ts";
import type { References } from "./value-references.ts";
import { revive, settle, type Unfinished } from "../../values/reviving.ts";
import { toSegments } from "../lists/segments.ts";
import type { KnownShapes } from "../rows/known-shapes.ts";
import {
  fromRecord,
  isWholeList,
  listTrees,
  recordTree,
  type StoredValue,
  type ValueRecord,
} from "../rows/stored-value.ts";
import { deltaChannelsOf } from "../rows/checkpoint-body.ts";
import { parseRowText } from "../rows/row-text.ts";
import type { KnownCheckpoint, ThreadWriter } from "../write/thread-writer.ts";

/** `learner` records the tuple, so that the next checkpoint can be stored by difference. */
export const reviveTuple = async (
  loaded: LoadedCheckpoint,
  threadId: string,
  learner: ThreadWriter | undefined,
  classes: ValueClasses,
): Promise<CheckpointTuple> => {
  const { row, body } = loaded;
  const unfinished: Unfinished = [];
  const values: Record<string, unknown> = {};
  const lists: Array<{ value: StoredValue; elements: unknown[]; trees: unknown[] }> = [];
  const channels = new Map<string, StoredValue>();
  for (const [channel, record] of loaded.channels) {
    const value = fromRecord(record);
    const elementsOf = (list: number): unknown[] => {
      const trees = treesOf(record, list, loaded);
      const elements = revive(trees, unfinished, undefined, classes) as unknown[];
      if (isWholeList(record)) lists.push({ value, elements, trees });
      return elements;
    };
    const holder = revive([recordTree(record, loaded.elements)], unfinished, elementsOf, classes) as [
      unknown,
    ];
    await settle(unfinished.splice(0));
    setProperty(values, channel, holder[0]);
    channels.set(channel, value);
    if (record.c !== undefined) learner?.values.contents.remember(record.c);
  }
  for (const { value, elements, trees } of lists) {
    const [reference] = value.lists;
    if (reference === undefined || learner === undefined) continue;
    // A copy, because reducers may change the array.
    const live = { reference, elements: elements.slice(), trees };
    if (learner.threadLists.remember(live)) value.live = live;
  }
  learner?.learn(row.checkpoint_ns, row.checkpoint_id, {
    versions: { ...body.channel_versions },
    channels,
    deltaChannels: loaded.deltaChannels,
  });
  const pendingWrites: CheckpointPendingWrite[] = [];
  for (const write of loaded.writes) pendingWrites.push(await reviveWrite(write, loaded, classes));
  const at = (id: string): RunnableConfig => ({
    configurable: { thread_id: threadId, checkpoint_ns: row.checkpoint_ns, checkpoint_id: id },
  });
  const metadata = revive(JSON.parse(row.metadata), undefined, undefined, classes) as CheckpointMetadata<{
    run_id?: string;
  }>;
  if (row.run_id !== null) metadata.run_id ??= row.run_id;
  const checkpoint: Checkpoint = { ...body, id: row.checkpoint_id, channel_values: values };
  return {
    config: at(row.checkpoint_id),
    checkpoint,
    metadata,
    ...(row.parent_id === null ? {} : { parentConfig: at(row.parent_id) }),
    pendingWrites,
  };
};

/** Before version 4, sends were stored in the parent's writes. */
export const migratePendingSends = async (
  checkpoint: Checkpoint,
  reader: CheckpointReader,
  { row }: LoadedCheckpoint,
  classes: ValueClasses,
): Promise<void> => {
  if (checkpoint.v >= 4 || row.parent_id === null) return;
  const address = { threadId: row.thread_id, checkpointNs: row.checkpoint_ns, checkpointId: row.parent_id };
  const parent = await reader.read(address);
  const sends: unknown[] = [];
  for (const write of parent?.writes ?? []) {
    if (write.channel === TASKS && parent !== undefined)
      sends.push((await reviveWrite(write, parent, classes))[2]);
  }
  const versions = Object.values(checkpoint.channel_versions);
  checkpoint.channel_values[TASKS] = sends;
  checkpoint.channel_versions[TASKS] = versions.length > 0 ? maxChannelVersion(...versions) : 1;
};

export const toKnown = ({ record, segments, shape }: References, shapes: KnownShapes): KnownCheckpoint => {
  const parsed = shapes.parse(shape);
  const { body, channels } = parseRowText(record, parsed, segments);
  return {
    versions: body.channel_versions,
    channels: new Map(channels.map(([channel, value]) => [channel, fromRecord(value)])),
    deltaChannels: deltaChannelsOf(parsed),
  };
};

export const reviveWrite = async (
  write: LoadedWrite,
  loaded: LoadedCheckpoint,
  classes: ValueClasses,
): Promise<CheckpointPendingWrite> => [
  write.taskId,
  write.channel,
  await reviveRecord(write.record, loaded, classes),
];

export const reviveRecord = async (
  record: ValueRecord,
  loaded: LoadedCheckpoint,
  classes: ValueClasses,
): Promise<unknown> => {
  const unfinished: Unfinished = [];
  const elementsOf = (list: number): unknown[] =>
    revive(treesOf(record, list, loaded), unfinished, undefined, classes) as unknown[];
  const holder = revive([recordTree(record, loaded.elements)], unfinished, elementsOf, classes) as [unknown];
  await settle(unfinished);
  return holder[0];
};

const treesOf = (record: ValueRecord, list: number, { elements }: LoadedCheckpoint): unknown[] => {
  const segments = toSegments(record.l?.[list] ?? []);
  const [first] = segments;
  const trees =
    first !== undefined && segments.length === 1
      ? elements.trees(first.list, first.from, first.to)
      : segments.flatMap((segment) => elements.trees(segment.list, segment.from, segment.to));
  return listTrees(record, trees);
};
