import type { Checkpoint, CheckpointMetadata, DeltaChannelHistory } from "@langchain/langgraph-checkpoint";
import { isUuid } from "../../platform/lib/ids.ts";
import type { ValueClasses } from "../values/classes.ts";
import type { ConfiguredCheckpoint } from "./config.ts";
import { reviveText, type CheckpointReader } from "./reader.ts";
import { readAncestors } from "./rows.ts";
import type { KnownCheckpoint, ThreadWriter } from "./writer.ts";

/**
 * A prune needs these names, and LangGraph gives a saver none. A run counts the steps since a snapshot in its metadata;
 * an update of a state and a copy do not, but they follow a checkpoint that is known, or ask for the history.
 */
export const deltaChannelsIn = (
  writer: ThreadWriter,
  parent: KnownCheckpoint | undefined,
  checkpointNs: string,
  checkpoint: Checkpoint,
  metadata: CheckpointMetadata,
): readonly string[] => {
  const before = parent?.deltaChannels ?? [];
  let all: Set<string> | undefined;
  const add = (channel: string): void => {
    if (!before.includes(channel)) (all ??= new Set(before)).add(channel);
  };
  writer.deltaChannels.get(checkpointNs)?.forEach(add);
  const { counters_since_delta_snapshot: counters } = metadata as { counters_since_delta_snapshot?: object };
  if (counters !== undefined) Object.keys(counters).forEach(add);
  for (const channel in checkpoint.channel_values) {
    const value = checkpoint.channel_values[channel] as { lg_name?: unknown } | null;
    // By name: older versions of LangGraph's package do not export the function that says so.
    if (typeof value === "object" && value?.lg_name === "DeltaSnapshot") add(channel);
  }
  return all === undefined ? before : [...all].sort();
};

type Histories = Record<string, DeltaChannelHistory>;

const ANCESTORS_AT_A_TIME = 200;

export const noHistory = (channels: readonly string[]): Histories =>
  Object.fromEntries(channels.map((channel) => [channel, { writes: [] }]));

/**
 * Oldest first, from the nearest ancestor with a value. Reads 200 ancestors at a time. Without a checkpoint there is no
 * history: a subgraph may begin anew although its namespace has checkpoints of a later step.
 */
export const readDeltaHistory = async (
  reader: CheckpointReader,
  { key, checkpointNs, checkpointId }: ConfiguredCheckpoint,
  channels: readonly string[],
  classes: ValueClasses,
): Promise<Histories> => {
  const histories = new Map(Object.entries(noHistory(channels)));
  const open = new Set(channels);
  let cursor = checkpointId;
  while (cursor !== undefined && isUuid(cursor) && open.size > 0) {
    const rows = await readAncestors(reader.database, key, checkpointNs, cursor, ANCESTORS_AT_A_TIME);
    for await (const loaded of reader.load(rows, new Set(open))) {
      if ("error" in loaded) throw loaded.error;
      for (const { taskId, channel, text } of loaded.row.writes.toReversed()) {
        if (!open.has(channel)) continue;
        histories
          .get(channel)
          ?.writes.push([taskId, channel, await reviveText(text, loaded.contents, classes)]);
      }
      for (const [channel, text] of loaded.channels) {
        const history = histories.get(channel);
        if (history === undefined || !open.delete(channel)) continue;
        history.seed = await reviveText(text, loaded.contents, classes);
      }
    }
    cursor = rows.length < ANCESTORS_AT_A_TIME ? undefined : rows.at(-1)?.checkpoint_id;
  }
  for (const history of histories.values()) history.writes.reverse();
  return Object.fromEntries(histories);
};
