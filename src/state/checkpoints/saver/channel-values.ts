import type { ChannelVersions, Checkpoint, CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import type { Database } from "../../../platform/database/database.ts";
import { ownField } from "../../../platform/lib/names.ts";
import { readAllReferences, readReferences } from "../read/value-references.ts";
import type { KnownShapes } from "../rows/known-shapes.ts";
import type { StoredValue } from "../rows/stored-value.ts";
import type { KnownCheckpoint, ThreadWriter } from "../write/thread-writer.ts";
import { toKnown } from "../read/checkpoint-tuples.ts";

interface ReferenceSources {
  database: Database;
  shapes: KnownShapes;
}

export interface GivenCheckpoint {
  checkpoint: Checkpoint;
  checkpointNs: string;
  parentId: string | undefined;
  newVersions: ChannelVersions;
  source: CheckpointMetadata["source"];
}

/** `parent`: undefined for a first checkpoint. */
export const storeChannels = async (
  sources: ReferenceSources,
  writer: ThreadWriter,
  parent: KnownCheckpoint | undefined,
  { checkpoint, checkpointNs, newVersions, source }: GivenCheckpoint,
): Promise<Map<string, StoredValue>> => {
  const isFork = source === "fork";
  // An update of the state applies earlier writes of tasks without raising a version, and a copy of it follows its
  // parent.
  const mayDiffer = source === "update" || isFork;
  const channels = new Map<string, StoredValue>();
  for (const [channel, value] of Object.entries(checkpoint.channel_values)) {
    const before = parent?.channels.get(channel);
    const keepsVersion = !mayDiffer && !Object.hasOwn(newVersions, channel);
    const version = keepsVersion ? ownField(checkpoint.channel_versions, channel) : undefined;
    if (version !== undefined) {
      if (before !== undefined && ownField(parent?.versions, channel) === version) {
        channels.set(channel, before);
        continue;
      }
      if (!(await isStored(sources, writer, checkpointNs, channel, version))) continue;
    }
    channels.set(channel, writer.values.storeChannel(channel, value, isFork ? undefined : before));
  }
  return channels;
};

export const recall = async (
  { database, shapes }: ReferenceSources,
  writer: ThreadWriter,
  checkpointNs: string,
  checkpointId: string,
): Promise<KnownCheckpoint | undefined> => {
  const known = writer.recall(checkpointNs, checkpointId);
  if (known !== undefined) return known;
  if (writer.queue.isBusyWith(checkpointNs)) await writer.queue.settled();
  const row = await readReferences(database, writer.threadId, checkpointNs, checkpointId);
  return row === undefined ? undefined : toKnown(row, shapes);
};

/** Such a value is stored again, although it is neither new nor in the parent. */
const isStored = async (
  { database, shapes }: ReferenceSources,
  writer: ThreadWriter,
  checkpointNs: string,
  channel: string,
  version: number | string,
): Promise<boolean> => {
  if (writer.knowsVersion(checkpointNs, channel, version)) return true;
  await writer.queue.settled();
  const rows = await readAllReferences(database, writer.threadId, checkpointNs);
  return rows
    .map((row) => toKnown(row, shapes))
    .some((known) => ownField(known.versions, channel) === version && known.channels.has(channel));
};
