import { withoutServerOwned } from "../../graphs/configuration.ts";
import { isMessage } from "../../state/values/types/message.ts";
import { errorForClients } from "../../platform/domain/error-for-clients.ts";
import { toWireJson } from "../../state/values/wire-json.ts";
import { LANGGRAPH_MODES } from "./mode-names.ts";

interface PayloadConfig {
  tags?: unknown;
  metadata?: Record<string, unknown>;
  recursion_limit?: unknown;
  max_concurrency?: unknown;
  run_id?: unknown;
  run_name?: unknown;
  configurable?: Record<string, unknown>;
}

interface CheckpointPayload {
  config?: PayloadConfig;
  parentConfig?: PayloadConfig;
  tasks?: { state?: PayloadConfig }[];
}

const SHOWN_OF_SERVER = new Set([
  "thread_id",
  "run_id",
  "graph_id",
  "assistant_id",
  "checkpoint_ns",
  "checkpoint_id",
  "checkpoint_map",
]);

const checkpointOf = (config: PayloadConfig | undefined): unknown => {
  const configurable = config?.configurable;
  if (configurable === undefined) return null;
  const { thread_id, checkpoint_ns, checkpoint_id, checkpoint_map } = configurable;
  return {
    thread_id,
    checkpoint_ns: checkpoint_ns ?? "",
    checkpoint_id,
    checkpoint_map: checkpoint_map ?? null,
  };
};

/** Without LangGraph's own keys (`__`), which hold functions, the saver and the store. */
const shownConfig = (config: PayloadConfig | undefined, hidden: ReadonlySet<string>): unknown => {
  if (config === undefined) return null;
  const { configurable = {}, metadata, tags, recursion_limit, max_concurrency, run_id, run_name } = config;
  const { run_attempt: _, ...shownMetadata } = metadata ?? {};
  const given = withoutServerOwned(configurable);
  const shown = Object.entries(configurable).filter(
    ([key, value]) =>
      (SHOWN_OF_SERVER.has(key) && value !== undefined) ||
      (Object.hasOwn(given, key) && !key.startsWith("__") && !hidden.has(key)),
  );
  return {
    tags,
    metadata: shownMetadata,
    recursion_limit,
    max_concurrency,
    run_id,
    run_name,
    configurable: Object.fromEntries(shown),
  };
};

/**
 * Sends `checkpoint`, `parent_checkpoint` and LangGraph's configs, as the hosted service does. `hidden`: keys
 * of `configurable` to omit, because a reader may not be the run's creator.
 */
export const checkpointPayload = (payload: unknown, hidden: ReadonlySet<string>): unknown => {
  if (typeof payload !== "object" || payload === null) return payload;
  const { config, parentConfig, tasks, ...rest } = payload as CheckpointPayload;
  return {
    ...rest,
    config: shownConfig(config, hidden),
    parent_config: shownConfig(parentConfig, hidden),
    checkpoint: checkpointOf(config),
    parent_checkpoint: checkpointOf(parentConfig),
    tasks: (tasks ?? []).map(({ state, ...task }) => ({ ...task, checkpoint: checkpointOf(state) })),
  };
};

export const debugPayload = (payload: unknown, hidden: ReadonlySet<string>): unknown => {
  const { type, payload: inner } = payload as { type?: string; payload?: unknown };
  return type === "checkpoint"
    ? { ...(payload as object), payload: checkpointPayload(inner, hidden) }
    : payload;
};

export type StreamChunk = [namespace: string[], mode: string, payload: unknown];

/** See AttemptEvents. */
export type Emit = (event: string, data: () => string, checkpoint?: string) => void;

interface RequestedModes {
  /** LangGraph's modes; always with `values`, the source of the run's result and interrupts. */
  langGraph: string[];
  /** `events`: all inner events, through `streamEvents`. */
  events: boolean;
}

export const requestModes = (modes: readonly string[]): RequestedModes => {
  const langGraph = new Set<string>(["values"]);
  for (const mode of LANGGRAPH_MODES) if (modes.includes(mode)) langGraph.add(mode);
  if (modes.includes("steps")) langGraph.add("tasks");
  if (modes.includes("messages") || modes.includes("messages-tuple")) langGraph.add("messages");
  return { langGraph: [...langGraph], events: modes.includes("events") };
};

interface LangGraphTask {
  id: string;
  name: string;
  /** Absent at the end of the task. */
  input?: unknown;
  result?: unknown;
  interrupts?: readonly unknown[];
}

/**
 * `steps`: tasks without their inputs and results, which repeat the state. LangGraph does not say whether a task failed,
 * but a task that failed wrote nothing.
 */
const stepOf = (task: LangGraphTask): string => {
  const { id, name, result, interrupts = [] } = task;
  if ("input" in task) return JSON.stringify({ id, name, ended: false });
  const wrote = typeof result !== "object" || (result !== null && Object.keys(result).length > 0);
  return JSON.stringify({ id, name, ended: true, asked: interrupts.length > 0, wrote });
};

interface MessageWithId {
  id?: string;
  concat?: (other: unknown) => MessageWithId;
}

const isChunk = (message: object): boolean => "concat" in message && typeof message.concat === "function";

/**
 * The `messages` mode of the first SDKs: growing messages (`messages/partial`) after one `messages/metadata`,
 * and finished ones (`messages/complete`).
 */
const createMessageAccumulator = (emit: Emit) => {
  const growing = new Map<string, MessageWithId>();
  const introduced = new Set<string>();
  const complete = new Set<string>();

  const introduce = (id: string, metadata: unknown): void => {
    if (introduced.has(id)) return;
    introduced.add(id);
    emit("messages/metadata", () => toWireJson({ [id]: { metadata } }));
  };
  return {
    add(payload: unknown): void {
      const [message, metadata] = payload as [MessageWithId, unknown];
      if (message.id === undefined) return;
      introduce(message.id, metadata);
      if (!isChunk(message)) {
        if (complete.has(message.id)) return;
        complete.add(message.id);
        emit("messages/complete", () => toWireJson([message]));
        return;
      }
      const grown = growing.get(message.id)?.concat?.(message) ?? message;
      growing.set(message.id, grown);
      emit("messages/partial", () => toWireJson([grown]));
    },
    addState(values: unknown): void {
      const messages = (values as { messages?: unknown } | null)?.messages;
      if (!Array.isArray(messages)) return;
      const finished = (messages as MessageWithId[]).filter(
        (message) =>
          typeof message === "object" &&
          isMessage(message) &&
          message.id !== undefined &&
          !complete.has(message.id),
      );
      if (finished.length === 0) return;
      for (const message of finished) {
        if (message.id === undefined) continue;
        complete.add(message.id);
        growing.delete(message.id);
      }
      emit("messages/complete", () => toWireJson(finished));
    },
  };
};

/** The form of errors in JSON, without what only the log may show. */
const toolPayload = (payload: unknown): unknown => {
  const { error: thrown } = payload as { error?: unknown };
  if (!(thrown instanceof Error)) return payload;
  const { error: name, message } = errorForClients(thrown);
  return { ...(payload as object), error: { name, message } };
};

/** Stateful: one per attempt. `hidden`: see `checkpointPayload`. */
export const createChunkConverter = (modes: readonly string[], emit: Emit, hidden: ReadonlySet<string>) => {
  const wanted = new Set(modes);
  const accumulator = wanted.has("messages") ? createMessageAccumulator(emit) : undefined;

  const shown = new Map<string, (payload: unknown) => unknown>([
    ["checkpoints", (payload) => checkpointPayload(payload, hidden)],
    ["debug", (payload) => debugPayload(payload, hidden)],
    ["tools", toolPayload],
  ]);

  return ([namespace, mode, payload]: StreamChunk): void => {
    const suffix = namespace.length === 0 ? "" : `|${namespace.join("|")}`;
    if (mode === "messages") {
      if (wanted.has("messages-tuple")) emit(`messages${suffix}`, () => toWireJson(payload));
      accumulator?.add(payload);
      return;
    }
    if (mode === "tasks" && wanted.has("steps"))
      emit(`steps${suffix}`, () => stepOf(payload as LangGraphTask));
    if (wanted.has(mode)) {
      const show = shown.get(mode);
      emit(`${mode}${suffix}`, () => toWireJson(show === undefined ? payload : show(payload)));
    }
    if (mode === "values" && namespace.length === 0) accumulator?.addState(payload);
  };
};
