import type { CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import type { KnownCheckpoint, ThreadWriter } from "../write/thread-writer.ts";
import type { GivenCheckpoint } from "./channel-values.ts";

/**
 * A prune needs these names, and LangGraph gives a saver none. A run counts the steps since a snapshot in its metadata;
 * an update of a state and a copy do not, but they follow a checkpoint that is known, or ask for the history.
 */
export const deltaChannelsIn = (
  writer: ThreadWriter,
  parent: KnownCheckpoint | undefined,
  { checkpoint, checkpointNs }: GivenCheckpoint,
  metadata: CheckpointMetadata,
): string[] => {
  const channels = new Set(parent?.deltaChannels);
  for (const channel of writer.deltaChannels.get(checkpointNs) ?? []) channels.add(channel);
  const { counters_since_delta_snapshot: counters } = metadata as { counters_since_delta_snapshot?: object };
  for (const channel of Object.keys(counters ?? {})) channels.add(channel);
  // By name: older versions of LangGraph's package do not export the function that says so.
  for (const [channel, value] of Object.entries(checkpoint.channel_values))
    if ((value as { lg_name?: unknown } | undefined | null)?.lg_name === "DeltaSnapshot")
      channels.add(channel);
  return [...channels].sort();
};
