import type { RunnableConfig } from "@langchain/core/runnables";
import type { JsonObject } from "../../../platform/lib/json.ts";
import type { StoredCheckpoint } from "../../../state/checkpoints/types.ts";
import { toWireJson } from "../../../state/values/wire-json.ts";
import type { StoredChannels } from "./thread-graphs.ts";

/** A `StateSnapshot` of any copy of LangGraph. */
export interface Snapshot {
  values: unknown;
  next: readonly string[];
  tasks: readonly SnapshotTask[];
  metadata?: unknown;
  createdAt?: string;
  config?: RunnableConfig;
  parentConfig?: RunnableConfig;
}

interface SnapshotTask {
  id: string;
  name: string;
  path?: unknown;
  error?: unknown;
  interrupts?: readonly unknown[];
  result?: unknown;
  state?: unknown;
}

export interface CheckpointPlace {
  threadId: string;
  checkpointNs: string;
  checkpointId: string;
  /** Checkpoints of the parent graphs and this one, by namespace; null in the root graph. */
  map: JsonObject | null;
}

/** Clients send this form back. */
export const writeCheckpoint = (place: CheckpointPlace): string =>
  `{"thread_id":"${place.threadId}","checkpoint_ns":${JSON.stringify(place.checkpointNs)},` +
  `"checkpoint_id":${JSON.stringify(place.checkpointId)},"checkpoint_map":${JSON.stringify(place.map)}}`;

export const placeOf = (config: RunnableConfig | undefined): CheckpointPlace | undefined => {
  const { thread_id, checkpoint_ns, checkpoint_id, checkpoint_map } = (config?.configurable ?? {}) as Record<
    string,
    unknown
  >;
  if (typeof thread_id !== "string" || typeof checkpoint_id !== "string") return undefined;
  return {
    threadId: thread_id,
    checkpointNs: typeof checkpoint_ns === "string" ? checkpoint_ns : "",
    checkpointId: checkpoint_id,
    map: (checkpoint_map as JsonObject | undefined) ?? null,
  };
};

const writePlace = (config: RunnableConfig | undefined): string => {
  const place = placeOf(config);
  return place === undefined ? "null" : writeCheckpoint(place);
};

/** Clients receive the message of `{name, message}`. */
const writeError = (error: unknown): string => {
  if (error === undefined || error === null) return "null";
  if (typeof error === "object" && "message" in error && typeof error.message === "string") {
    return JSON.stringify(error.message);
  }
  return typeof error === "string" ? JSON.stringify(error) : JSON.stringify(toWireJson(error));
};

const isSnapshot = (state: unknown): state is Snapshot =>
  typeof state === "object" && state !== null && "values" in state && "next" in state;

const writeSubgraph = (state: unknown): { checkpoint: string; state: string } => {
  if (isSnapshot(state)) return { checkpoint: "null", state: writeState(snapshotFields(state)) };
  if (typeof state === "object" && state !== null && "configurable" in state) {
    return { checkpoint: toWireJson(state.configurable), state: "null" };
  }
  return { checkpoint: "null", state: "null" };
};

export const writeTask = (task: SnapshotTask): string => {
  const subgraph = writeSubgraph(task.state);
  const result = task.result === undefined ? "null" : toWireJson(task.result);
  return (
    `{"id":${JSON.stringify(task.id)},"name":${JSON.stringify(task.name)},"path":${toWireJson(task.path ?? [])},` +
    `"error":${writeError(task.error)},"interrupts":${toWireJson(task.interrupts ?? [])},` +
    `"checkpoint":${subgraph.checkpoint},"state":${subgraph.state},"result":${result}}`
  );
};

export interface StateFields {
  values: string;
  next: string;
  tasks: string;
  metadata: string;
  created_at: string;
  checkpoint: string;
  parent_checkpoint: string;
  interrupts: string;
}

/** `finished`: tasks that wait for no answer, although LangGraph lists their interrupts. */
export const snapshotFields = (
  snapshot: Snapshot,
  finished: ReadonlySet<string> = new Set(),
): StateFields => ({
  values: toWireJson(snapshot.values),
  next: JSON.stringify(snapshot.next),
  tasks: `[${snapshot.tasks.map(writeTask).join(",")}]`,
  metadata: toWireJson(snapshot.metadata ?? {}),
  created_at: snapshot.createdAt === undefined ? "null" : JSON.stringify(snapshot.createdAt),
  checkpoint: writePlace(snapshot.config),
  parent_checkpoint: writePlace(snapshot.parentConfig),
  interrupts: toWireJson(
    snapshot.tasks.flatMap(({ id, interrupts = [] }) => (finished.has(id) ? [] : interrupts)),
  ),
});

/** For a thread that never ran. Clients read `values` and `next` without a check. */
export const EMPTY_STATE: Readonly<StateFields> = Object.freeze({
  values: "{}",
  next: "[]",
  tasks: "[]",
  metadata: "{}",
  created_at: "null",
  checkpoint: "null",
  parent_checkpoint: "null",
  interrupts: "[]",
});

export const writeState = (fields: StateFields): string =>
  `{"values":${fields.values},"next":${fields.next},"tasks":${fields.tasks},"metadata":${fields.metadata},` +
  `"created_at":${fields.created_at},"checkpoint":${fields.checkpoint},` +
  `"parent_checkpoint":${fields.parent_checkpoint},"interrupts":${fields.interrupts}}`;

/** `values.<key>` selects a single key. Unknown names select nothing. */
export const writeSelected = (fields: StateFields, select: readonly string[]): string => {
  const written: string[] = [];
  for (const [name, json] of Object.entries(fields) as [keyof StateFields, string][]) {
    if (select.includes(name)) written.push(`"${name}":${json}`);
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
  const { threadId, checkpointNs, checkpointId, parentCheckpointId } = stored;
  return {
    values,
    next: "[]",
    tasks: "[]",
    metadata: JSON.stringify({ ...stored.metadata, thread_id: threadId }),
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
  ...storedFields(stored, "{}"),
  tasks: `[${writeTask({
    id: stored.checkpointId,
    name: "",
    error: "This state can't be read; the server's log says why.",
  })}]`,
});

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
