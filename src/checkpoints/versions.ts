/**
 * A checkpoint's versions, by difference: which channels and nodes there are (the shape) is the same in nearly every
 * checkpoint of a thread and is kept once; the row holds the numbers only.
 */

import type { ChannelVersions, Checkpoint } from "@langchain/langgraph-checkpoint";
import { setField } from "./encoding.ts";

type Version = number | string;

/** The names that the numbers belong to. */
type Shape = [channels: string[], nodes: Array<[node: string, channels: string[]]>];

/** The `body` of a row. The first of the row's contents is the shape. */
interface Body {
  v: number;
  ts: string;
  /** Of the channels, and what the nodes have seen, in the order of the shape. */
  n: [channels: Version[], nodes: Version[][]];
}

/** What a checkpoint holds beside its values. */
export interface CheckpointBody {
  v: number;
  ts: string;
  channel_versions: ChannelVersions;
  versions_seen: Record<string, ChannelVersions>;
}

export const bodyTexts = (checkpoint: Checkpoint): { body: string; shape: string } => {
  const { v, ts, channel_versions, versions_seen } = checkpoint;
  const nodes = Object.entries(versions_seen);
  const shape: Shape = [
    Object.keys(channel_versions),
    nodes.map(([node, seen]) => [node, Object.keys(seen)]),
  ];
  const numbers: Body["n"] = [Object.values(channel_versions), nodes.map(([, seen]) => Object.values(seen))];
  return { body: JSON.stringify({ v, ts, n: numbers } satisfies Body), shape: JSON.stringify(shape) };
};

/** `shape` is parsed already. */
export const parseBody = (text: string, shape: unknown): CheckpointBody => {
  const { v, ts, n } = JSON.parse(text) as Body;
  const [channels, nodes] = shape as Shape;
  const seen: CheckpointBody["versions_seen"] = {};
  for (const [index, [node, names]] of nodes.entries())
    setField(seen, node, together(names, n[1][index] ?? []));
  return { v, ts, channel_versions: together(channels, n[0]), versions_seen: seen };
};

const together = (names: readonly string[], versions: readonly Version[]): ChannelVersions => {
  const together: ChannelVersions = {};
  for (const [index, name] of names.entries()) setField(together, name, versions[index]);
  return together;
};
