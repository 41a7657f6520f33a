import type { RunnableConfig } from "@langchain/core/runnables";
import type { StateSnapshot } from "@langchain/langgraph";
import type { JsonObject } from "../../../platform/lib/json.ts";
import type { StoredCheckpoint } from "../../../state/checkpoints/types.ts";
import { toWireJson } from "../../../state/values/wire-json.ts";
import type { StoredChannels } from "./graphs.ts";

/** Of any copy of LangGraph. */
type Task = StateSnapshot["tasks"][number];

/** Clients send this form back. */
export interface CheckpointAddress {
  thread_id: string;
  checkpoint_ns: string;
  checkpoint_id: string;
  /** Checkpoints of the parent graphs and this one, by namespace; null in the root graph. */
  checkpoint_map: JsonObject | null;
}

/** Null without a checkpoint. */
export const addressIn = (config: RunnableConfig | undefined): CheckpointAddress | null => {
  const { thread_id, checkpoint_ns, checkpoint_id, checkpoint_map } = (config?.configurable ?? {}) as Record<
    string,
    unknown
  >;
  if (typeof thread_id !== "string" || typeof checkpoint_id !== "string") return null;
  return {
    thread_id,
    checkpoint_ns: typeof checkpoint_ns === "string" ? checkpoint_ns : "",
    checkpoint_id,
    checkpoint_map: (checkpoint_map as JsonObject | undefined) ?? null,
  };
};

/** Clients receive the message of `{name, message}`. */
const writeError = (error: unknown): string => {
  if (error === undefined || error === null) return "null";
  if (typeof error === "object" && "message" in error && typeof error.message === "string") {
    return JSON.stringify(error.message);
  }
  return typeof error === "string" ? JSON.stringify(error) : JSON.stringify(toWireJson(error));
};

const isSnapshot = (state: Task["state"]): state is StateSnapshot =>
  state !== undefined && "values" in state && "next" in state;

const writeTask = (task: Task): string => {
  const { state } = task;
  const subgraph = isSnapshot(state) ? writeState(snapshotFields(state)) : "null";
  const checkpoint = state !== undefined && "configurable" in state ? toWireJson(state.configurable) : "null";
  const result = task.result === undefined ? "null" : toWireJson(task.result);
  return (
    `{"id":${JSON.stringify(task.id)},"name":${JSON.stringify(task.name)},"path":${toWireJson(task.path ?? [])},` +
    `"error":${writeError(task.error)},"interrupts":${toWireJson(task.interrupts ?? [])},` +
    `"checkpoint":${checkpoint},"state":${subgraph},"result":${result}}`
  );
};

/** JSON texts. */
export type StateFields = Record<keyof typeof EMPTY_STATE, string>;

/** `finished`: tasks that wait for no answer, although LangGraph lists their interrupts. */
export const snapshotFields = (
  snapshot: StateSnapshot,
  finished: ReadonlySet<string> = new Set(),
): StateFields => ({
  values: toWireJson(snapshot.values),
  next: JSON.stringify(snapshot.next),
  tasks: `[${snapshot.tasks.map(writeTask).join(",")}]`,
  metadata: toWireJson(snapshot.metadata ?? {}),
  created_at: snapshot.createdAt === undefined ? "null" : JSON.stringify(snapshot.createdAt),
  checkpoint: JSON.stringify(addressIn(snapshot.config)),
  parent_checkpoint: JSON.stringify(addressIn(snapshot.parentConfig)),
  interrupts: toWireJson(
    snapshot.tasks.flatMap(({ id, interrupts = [] }) => (finished.has(id) ? [] : interrupts)),
  ),
});

/** For a thread that never ran. Clients read `values` and `next` without a check. */
export const EMPTY_STATE = {
  values: "{}",
  next: "[]",
  tasks: "[]",
  metadata: "{}",
  created_at: "null",
  checkpoint: "null",
  parent_checkpoint: "null",
  interrupts: "[]",
} as const;

/** `select`: names of fields; `values.<key>` selects a single key. Unknown names select nothing. */
export const writeState = (fields: StateFields, select?: readonly string[]): string => {
  const written: string[] = [];
  for (const [name, json] of Object.entries(fields) as [keyof StateFields, string][]) {
    if (select === undefined || select.includes(name)) written.push(`"${name}":${json}`);
    else if (name === "values") {
      const keys = select.filter((field) => field.startsWith("values.")).map((field) => field.slice(7));
      if (keys.length > 0) written.push(`"values":${pick(json, keys)}`);
    }
  }
  return `{${written.join(",")}}`;
};

const pick = (json: string, keys: readonly string[]): string => {
  const value = JSON.parse(json) as unknown;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return "{}";
  return JSON.stringify(Object.fromEntries(Object.entries(value).filter(([key]) => keys.includes(key))));
};

/** LangGraph's `patchCheckpointMap`. */
const mapOf = ({ metadata, checkpointNs, checkpointId }: StoredCheckpoint): JsonObject | null => {
  const parents = metadata.parents as JsonObject | undefined;
  return parents === undefined || Object.keys(parents).length === 0
    ? null
    : { ...parents, [checkpointNs]: checkpointId };
};

/** The fields that need no graph. */
export const storedFields = (stored: StoredCheckpoint, values: string): StateFields => {
  const { threadId: thread_id, checkpointNs: checkpoint_ns, parentCheckpointId } = stored;
  const address = (checkpoint_id: string | null, checkpoint_map: JsonObject | null): string =>
    JSON.stringify(checkpoint_id && { thread_id, checkpoint_ns, checkpoint_id, checkpoint_map });
  return {
    ...EMPTY_STATE,
    values,
    metadata: JSON.stringify({ ...stored.metadata, thread_id }),
    created_at: JSON.stringify(stored.createdAt),
    checkpoint: address(stored.checkpointId, mapOf(stored)),
    parent_checkpoint: address(parentCheckpointId, null),
  };
};

export const unreadableFields = (stored: StoredCheckpoint): StateFields => {
  const error = "This state can't be read; the server's log says why.";
  const task = writeTask({ id: stored.checkpointId, name: "", error, interrupts: [] });
  return { ...storedFields(stored, "{}"), tasks: `[${task}]` };
};

/** A channel without a stored value has its default. */
export const writeStoredValues = (
  { values }: StoredCheckpoint,
  { isOne, channels }: StoredChannels,
): string => {
  const fields: string[] = [];
  for (const [name, channel] of channels) {
    const fresh = values.has(name) ? undefined : channel.fromCheckpoint(undefined);
    const text = fresh?.isAvailable() ? toWireJson(fresh.get()) : values.get(name);
    if (isOne) return text ?? "null";
    if (text !== undefined) fields.push(`${JSON.stringify(name)}:${text}`);
  }
  return isOne ? "null" : `{${fields.join(",")}}`;
};

const INTERNAL_CHANNEL = /^(__|branch:|join:)/;

/** Without a graph, the state channels are unknown, so all possible ones are written. */
export const writeAllValues = ({ values }: StoredCheckpoint): string =>
  `{${[...values]
    .filter(([name]) => !INTERNAL_CHANNEL.test(name))
    .map(([name, text]) => `${JSON.stringify(name)}:${text}`)
    .join(",")}}`;
