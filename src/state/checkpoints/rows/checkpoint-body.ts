/** The names of channels and nodes (the shape) are equal in nearly all checkpoints of a thread, and are stored once. */

import type { ChannelVersions, Checkpoint } from "@langchain/langgraph-checkpoint";
import { setProperty } from "../../../platform/lib/properties.ts";

type Version = number | string;

/** `unversioned`: channels that have values but no versions (`__pregel_tasks`). `delta`: known delta channels. */
export type Shape = [
  channels: string[],
  nodes: Array<[node: string, channels: string[]]>,
  unversioned?: string[],
  delta?: string[],
];

/** SQL: whether the shape of `s` names delta channels. Not jsonb, which refuses a NUL in a name. */
export const HAS_DELTA_CHANNELS_OF_S = "json_array_length(s.shape::json) > 3";

type Body = [v: number, ts: string, channels: Version[], nodes: Version[][]];

export interface CheckpointBody {
  v: number;
  ts: string;
  channel_versions: ChannelVersions;
  versions_seen: Record<string, ChannelVersions>;
}

export const deltaChannelsOf = (shape: Shape): readonly string[] => shape[3] ?? [];

/** `body`: the items of a JSON array, without its brackets. */
export const composeBody = (
  checkpoint: Checkpoint,
  deltaChannels: readonly string[],
): { body: string; channelNames: string[]; shape: string } => {
  const { v, ts, channel_values, channel_versions, versions_seen } = checkpoint;
  const nodes = Object.entries(versions_seen);
  const channelNames = Object.keys(channel_versions);
  const shape: Shape = [channelNames, nodes.map(([node, seen]) => [node, Object.keys(seen)])];
  const unversioned = Object.keys(channel_values).filter((name) => !Object.hasOwn(channel_versions, name));
  if (deltaChannels.length > 0) shape.push(unversioned, [...deltaChannels]);
  else if (unversioned.length > 0) shape.push(unversioned);
  const seen = nodes.map(([, versions]) => Object.values(versions));
  const body = JSON.stringify([v, ts, Object.values(channel_versions), seen] satisfies Body).slice(1, -1);
  return { body, channelNames: [...channelNames, ...unversioned], shape: JSON.stringify(shape) };
};

export const parseBody = (body: unknown, [channelNames, nodes]: Shape): CheckpointBody => {
  const [v, ts, channels, nodesSeen] = body as Body;
  const seen: CheckpointBody["versions_seen"] = {};
  for (const [index, [node, names]] of nodes.entries())
    setProperty(seen, node, together(names, nodesSeen[index] ?? []));
  return { v, ts, channel_versions: together(channelNames, channels), versions_seen: seen };
};

const together = (names: readonly string[], versions: readonly Version[]): ChannelVersions => {
  const together: ChannelVersions = {};
  for (const [index, name] of names.entries()) setProperty(together, name, versions[index]);
  return together;
};
