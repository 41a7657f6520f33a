import type { CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import type { KnownCheckpoint, ThreadWriter } from "../write/thread-writer.ts";
import type { GivenCheckpoint } from "./channel-values.ts";

/** Versions of `@langchain/langgraph-checkpoint` without delta channels do not export the function of this name. */
const isDeltaSnapshot = (value: unknown): boolean =>
  typeof value === "object" && value !== null && "lg_name" in value && value.lg_name === "DeltaSnapshot";

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
  const { counters_since_delta_snapshot: counters } = metadata as { counters_since_delta_snapshot?: object };
  const snapshots = Object.entries(checkpoint.channel_values).filter(([, value]) => isDeltaSnapshot(value));
  const channels = new Set([
    ...(parent?.deltaChannels ?? []),
    ...writer.notedDeltaChannels(checkpointNs),
    ...Object.keys(counters ?? {}),
    ...snapshots.map(([channel]) => channel),
  ]);
  return [...channels].sort();
};
