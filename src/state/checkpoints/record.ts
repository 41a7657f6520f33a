/**
 * The texts of a checkpoint's row. `record` has lines: versions, then the value of each channel, in the order of its
 * names (names.ts); an empty line is a channel without a value. `writes` has a line for each write of a task: task UNIT
 * index UNIT channel UNIT value.
 */

import type { ChannelVersions, Checkpoint } from "@langchain/langgraph-checkpoint";
import type { CheckpointKey } from "../../platform/encryption/columns.ts";
import type { Encryption } from "../../platform/database/database.ts";
import { setProperty } from "../../platform/lib/properties.ts";
import type { Names } from "./names.ts";
import type { StoredValue } from "./values.ts";

/** JSON never contains these control characters. */
const LINE = "\n";
const UNIT = "\u001f";
/** Between the rows of a parameter, and between the writes of one task that came in several statements. */
export const RECORD = "\u001e";

type Version = number | string;
type Head = [v: number, ts: string, channels: Version[], nodes: Version[][]];
export type CheckpointBody = Pick<Checkpoint, "v" | "ts" | "channel_versions" | "versions_seen">;

export const composeRecord = (
  { v, ts, channel_versions, versions_seen }: Checkpoint,
  [channels, , unversioned]: Names,
  values: ReadonlyMap<string, StoredValue>,
): string => {
  const seen = Object.values(versions_seen).map((versions) => Object.values(versions));
  const head = JSON.stringify([v, ts, Object.values(channel_versions), seen] satisfies Head);
  const texts = [...channels, ...unversioned].map((channel) => values.get(channel)?.text ?? "");
  return [head, ...texts].join(LINE);
};

export const parseRecord = (
  record: string,
  [versioned, nodes, unversioned]: Names,
): { body: CheckpointBody; channels: Map<string, string> } => {
  const [head = "", ...texts] = record.split(LINE);
  const [v, ts, versions, nodesSeen] = JSON.parse(head) as Head;
  const versions_seen: CheckpointBody["versions_seen"] = {};
  for (const [index, [node, names]] of nodes.entries())
    setProperty(versions_seen, node, together(names, nodesSeen[index] ?? []));
  const channels = new Map<string, string>();
  for (const [index, channel] of [...versioned, ...unversioned].entries()) {
    const text = texts[index];
    if (text) channels.set(channel, text);
  }
  return { body: { v, ts, channel_versions: together(versioned, versions), versions_seen }, channels };
};

const together = (names: readonly string[], versions: readonly Version[]): ChannelVersions => {
  const together: ChannelVersions = {};
  for (const [index, name] of names.entries()) setProperty(together, name, versions[index]);
  return together;
};

export interface TaskWrite {
  taskId: string;
  /** Below 0 for LangGraph's own channels. */
  index: number;
  channel: string;
  /** As in the row. */
  text: string;
}

export const composeWrites = (writes: readonly TaskWrite[]): string =>
  writes
    .map(({ taskId, index, channel, text }) => [taskId, index, JSON.stringify(channel), text].join(UNIT))
    .join(LINE);

/**
 * By task and index. A later write to one of LangGraph's own channels replaces the earlier one; of others the first
 * stays, because a task that is executed again writes the same.
 */
export const parseWrites = (versions: readonly string[]): TaskWrite[] => {
  if (versions.length === 0) return [];
  const tasks = new Map<string, Map<number, TaskWrite>>();
  for (const line of versions.flatMap((version) => version.split(LINE))) {
    const [taskId = "", number = "", channel = "", text = ""] = line.split(UNIT);
    const index = Number(number);
    let task = tasks.get(taskId);
    if (task === undefined) tasks.set(taskId, (task = new Map<number, TaskWrite>()));
    if (index < 0 || !task.has(index))
      task.set(index, { taskId, index, channel: JSON.parse(channel) as string, text });
  }
  return [...tasks]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([, task]) => [...task.values()].sort((one, other) => one.index - other.index));
};

type TableOfWrites = "checkpoints" | "checkpoint_writes";
type KeyOfWrites = CheckpointKey & { task_id: string };

/** The key for the writes that came in the statement of their checkpoint. */
export const keyOfWrites = (checkpoint: CheckpointKey): KeyOfWrites => ({ ...checkpoint, task_id: "" });

/** Each version is encrypted by itself, so that the database can append one. */
export const openWrites = (
  encryption: Encryption,
  table: TableOfWrites,
  text: string,
  key: KeyOfWrites,
): string[] => text.split(RECORD).map((version) => encryption.decryptedValue(table, "writes", version, key));

export const reencryptWrites = (
  encryption: Encryption,
  table: TableOfWrites,
  text: string,
  key: KeyOfWrites,
): string =>
  text
    .split(RECORD)
    .map((version) => encryption.reencrypted(table, "writes", version, key))
    .join(RECORD);
