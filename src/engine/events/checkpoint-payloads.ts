import { withoutServerOwned } from "../../graphs/configuration.ts";

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
      (key in given && !key.startsWith("__") && !hidden.has(key)),
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
