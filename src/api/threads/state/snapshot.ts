import type { RunnableConfig } from "@langchain/core/runnables";
import type { StoredCheckpoint } from "../../../state/checkpoints/types.ts";
import { stateOf, type RunnableGraph } from "../../../graphs/runnable-graph.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { ownField } from "../../../platform/lib/names.ts";
import { toWireJson } from "../../../state/values/wire-json.ts";
import { TASKS_CHANNEL, type GraphPlan } from "./graph-plan.ts";
import {
  snapshotFields,
  ValueText,
  writeCheckpoint,
  writeTask,
  type Snapshot,
  type StateFields,
} from "./state-json.ts";

/** Pending writes that describe a task and update no channel. */
export const TASK_NOTES: ReadonlySet<string> = new Set(["__error__", "__interrupt__", "__scheduled__"]);

export const configOf = (
  threadId: string,
  checkpointNs: string,
  checkpointId: string | undefined,
): RunnableConfig => ({
  configurable: {
    thread_id: threadId,
    checkpoint_ns: checkpointNs,
    ...(checkpointId === undefined ? {} : { checkpoint_id: checkpointId }),
  },
});

/**
 * Whether no node is due, by LangGraph's rule without a command's writes. A consumed channel is empty, although the
 * node has not seen its newest version.
 */
export const isQuiet = (stored: StoredCheckpoint, plan: GraphPlan): boolean => {
  const { channelVersions, versionsSeen, values } = stored;
  const mayBeAvailable = (channel: string): boolean => {
    const text = values.get(channel);
    return text !== undefined && !(text === "[]" && plan.controlChannels.has(channel));
  };
  if (mayBeAvailable(TASKS_CHANNEL)) return false;
  for (const first in channelVersions) {
    const never = typeof channelVersions[first] === "number" ? 0 : "";
    for (const [node, triggers] of plan.triggersOf) {
      const seen = ownField(versionsSeen, node);
      for (const trigger of triggers) {
        const isNewer = (ownField(channelVersions, trigger) ?? never) > (ownField(seen, trigger) ?? never);
        if (isNewer && mayBeAvailable(trigger)) return false;
      }
    }
    break; // All versions have the same type.
  }
  return true;
};

const writeMetadata = ({ metadata, threadId }: StoredCheckpoint): string =>
  JSON.stringify({ ...metadata, thread_id: threadId });

/** LangGraph's `patchCheckpointMap`. */
const mapOf = ({ metadata, checkpointNs, checkpointId }: StoredCheckpoint): JsonObject | null => {
  const parents = metadata.parents as JsonObject | undefined;
  return parents === undefined || Object.keys(parents).length === 0
    ? null
    : { ...parents, [checkpointNs]: checkpointId };
};

export const quietFields = (stored: StoredCheckpoint, values: string): StateFields => {
  const { threadId, checkpointNs, checkpointId, parentCheckpointId } = stored;
  return {
    values,
    next: "[]",
    tasks: "[]",
    metadata: writeMetadata(stored),
    created_at: JSON.stringify(stored.createdAt),
    checkpoint: writeCheckpoint({ threadId, checkpointNs, checkpointId, map: mapOf(stored) }),
    parent_checkpoint:
      parentCheckpointId === null
        ? "null"
        : writeCheckpoint({ threadId, checkpointNs, checkpointId: parentCheckpointId, map: null }),
    interrupts: "[]",
  };
};

export const unreadableFields = (stored: StoredCheckpoint): StateFields => ({
  ...quietFields(stored, "{}"),
  tasks: `[${writeTask({
    id: stored.checkpointId,
    name: "",
    error: "This state can't be read; the server's log says why.",
  })}]`,
});

/** A channel without a stored value has its default. */
export const writePlannedValues = ({ values }: StoredCheckpoint, plan: GraphPlan): string => {
  const texts: string[] = [];
  for (const { name, jsonName, channel } of plan.valueChannels) {
    let text = values.get(name);
    if (text === undefined) {
      const fresh = channel.fromCheckpoint(undefined);
      if (fresh.isAvailable()) text = toWireJson(fresh.get());
    }
    if (plan.onlyChannel !== undefined) return text ?? "null";
    if (text !== undefined) texts.push(`${jsonName}:${text}`);
  }
  return plan.onlyChannel === undefined ? `{${texts.join(",")}}` : "null";
};

const INTERNAL_CHANNEL = /^(__|branch:|join:)/;

/** Without a graph, the state channels are unknown, so all possible ones are written. */
export const writeAllValues = ({ values }: StoredCheckpoint): string =>
  `{${[...values]
    .filter(([name]) => !INTERNAL_CHANNEL.test(name))
    .map(([name, text]) => `${JSON.stringify(name)}:${text}`)
    .join(",")}}`;

const parsed = (text: string | undefined): unknown => (text === undefined ? undefined : JSON.parse(text));

/** Undefined if LangGraph tried to read a value. */
export const snapshotOfTexts = async (
  graph: RunnableGraph,
  stored: StoredCheckpoint,
  plan: GraphPlan,
): Promise<StateFields | undefined> => {
  const { threadId, checkpointNs, checkpointId, parentCheckpointId, metadata } = stored;
  const channelValues: Record<string, unknown> = Object.fromEntries(
    [...stored.values].map(([name, text]) => [
      name,
      plan.controlChannels.has(name) ? JSON.parse(text) : new ValueText(text),
    ]),
  );
  const config = configOf(threadId, checkpointNs, checkpointId);
  const saved = {
    config,
    checkpoint: {
      v: 4,
      id: checkpointId,
      ts: stored.createdAt ?? "",
      channel_values: channelValues,
      channel_versions: stored.channelVersions,
      versions_seen: stored.versionsSeen,
    },
    metadata,
    ...(parentCheckpointId === null
      ? {}
      : { parentConfig: configOf(threadId, checkpointNs, parentCheckpointId) }),
    pendingWrites: stored.pendingWrites.map(({ taskId, channel, value }) => [
      taskId,
      channel,
      value === undefined || TASK_NOTES.has(channel) ? parsed(value) : new ValueText(value),
    ]),
  };
  try {
    return snapshotFields((await stateOf(graph, saved, { appliesWrites: false })) as Snapshot);
  } catch {
    // A user's cache key or an unknown version of LangGraph needs real values.
    return undefined;
  }
};
