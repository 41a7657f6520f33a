import type { CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import type { KnownCheckpoint, ThreadWriter } from "../write/thread-writer.ts";
import type { GivenCheckpoint } from "./channel-values.ts";

const NONE: readonly string[] = [];

/**
 * A prune needs these names, and LangGraph gives a saver none. A run counts the steps since a snapshot in its metadata;
 * an update of a state and a copy do not, but they follow a checkpoint that is known, or ask for the history.
 */
export const deltaChannelsIn = (
  writer: ThreadWriter,
  parent: KnownCheckpoint | undefined,
  { checkpoint, checkpointNs }: GivenCheckpoint,
  metadata: CheckpointMetadata,
): readonly string[] => {
  const before = parent?.deltaChannels ?? NONE;
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
