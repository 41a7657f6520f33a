import type { RunnableConfig } from "@langchain/core/runnables";
import type { StreamEvent } from "@langchain/core/tracers/log_stream";
import type { StateSnapshot } from "@langchain/langgraph";
import type {
  BaseCheckpointSaver,
  BaseStore,
  CheckpointListOptions,
  CheckpointTuple,
} from "@langchain/langgraph-checkpoint";
import { isObject } from "../platform/lib/json.ts";

/**
 * The used parts of LangGraph's `Pregel`. Never check it with `instanceof`: the project may have another copy of
 * LangGraph.
 */
export interface RunnableGraph {
  readonly name?: string;
  /** Bound by `withConfig`. */
  config?: RunnableConfig;
  readonly nodes: Record<string, unknown>;
  readonly channels: Record<string, unknown>;
  readonly inputChannels: string | string[];
  /** Set by `compile({ transformers })` in newer versions of LangGraph. */
  readonly streamTransformers?: unknown;
  readonly outputChannels: string | string[];
  readonly streamChannelsAsIs: string | string[];
  /** The `StateGraph`; undefined in the functional API. */
  readonly builder?: unknown;
  checkpointer?: BaseCheckpointSaver | boolean;
  store?: BaseStore;

  invoke(input: unknown, options?: GraphRunOptions): Promise<unknown>;
  stream(input: unknown, options?: GraphRunOptions): Promise<AsyncIterable<unknown>>;
  streamEvents(
    input: unknown,
    options: GraphRunOptions & { version: "v1" | "v2" },
    filter?: Record<string, unknown>,
  ): AsyncIterable<StreamEvent>;
  getState(config: RunnableConfig, options?: { subgraphs?: boolean }): Promise<StateSnapshot>;
  getStateHistory(config: RunnableConfig, options?: CheckpointListOptions): AsyncIterable<StateSnapshot>;
  updateState(config: RunnableConfig, values: unknown, asNode?: string): Promise<RunnableConfig>;
  bulkUpdateState(
    config: RunnableConfig,
    supersteps: { updates: { values?: unknown; asNode?: string }[] }[],
  ): Promise<RunnableConfig>;
  getGraphAsync(config?: { xray?: boolean | number }): Promise<DrawableGraph>;
  getSubgraphsAsync(namespace?: string, recurse?: boolean): AsyncIterable<[string, RunnableGraph]>;
}

/** The keys of what `invoke` returns. Undefined: a function's result, or a state that is one value. */
export const outputKeysOf = ({
  outputChannels,
}: Pick<RunnableGraph, "outputChannels">): readonly string[] | undefined =>
  typeof outputChannels === "string" ? undefined : outputChannels;

export interface GraphRunOptions extends RunnableConfig {
  context?: unknown;
  streamMode?: string | string[];
  subgraphs?: boolean;
  version?: "v2";
  interruptBefore?: "*" | string[];
  interruptAfter?: "*" | string[];
  durability?: "exit" | "async" | "sync";
  checkpointer?: BaseCheckpointSaver;
  store?: BaseStore;
}

interface DrawableGraph {
  readonly nodes: Record<string, { metadata?: Record<string, unknown> }>;
  toJSON(): { nodes: Record<string, unknown>[]; edges: Record<string, unknown>[] };
}

export interface GraphConfiguration {
  configurable?: Record<string, unknown>;
  context?: unknown;
  metadata?: Record<string, unknown>;
}

export type AccessContext = "threads.create_run" | "threads.read" | "threads.update" | "assistants.read";

/** A factory's second argument. `executionRuntime` is null if no node will run. */
export interface ServerRuntime {
  accessContext: AccessContext;
  executionRuntime: { context: unknown } | null;
  /** The store that nodes get. */
  store: BaseStore | undefined;
  /** The result of `authenticate`; null: no user. */
  user: unknown;
}

export const runtimeFor = (
  accessContext: AccessContext,
  { context, configurable }: GraphConfiguration,
  store: BaseStore | undefined,
): ServerRuntime => ({
  accessContext,
  executionRuntime: accessContext === "threads.create_run" ? { context } : null,
  store,
  user: configurable?.["langgraph_auth_user"] ?? null,
});

/** Replace the graph's own checkpointer and store. */
export interface GraphBindings {
  checkpointer?: BaseCheckpointSaver;
  store?: BaseStore;
}

const isCompiled = (value: unknown): value is RunnableGraph =>
  isObject(value) &&
  value.lg_is_pregel === true &&
  isObject(value.nodes) &&
  isObject(value.channels) &&
  typeof value.stream === "function";

/**
 * Undefined unless given a compiled graph, a builder, an agent of `createAgent`, or a promise of one.
 * @throws errors of compiling and of the promise
 */
export async function compiledGraph(exported: unknown): Promise<RunnableGraph | undefined> {
  const value = await exported;
  if (isCompiled(value)) return value;
  if (!isObject(value)) return undefined;
  if (isCompiled(value.graph)) return value.graph;
  if (typeof value.compile !== "function") return undefined;
  const compiled: unknown = await (value as { compile(): unknown }).compile();
  return isCompiled(compiled) ? compiled : undefined;
}

/** LangGraph checks `name in nodes` for the target of a `Send`: without this, `constructor` would count as a node. */
const withoutPrototype = (nodes: RunnableGraph["nodes"]): RunnableGraph["nodes"] =>
  Object.getPrototypeOf(nodes) === null
    ? nodes
    : (Object.assign(Object.create(null), nodes) as RunnableGraph["nodes"]);

type PregelFields = RunnableGraph & { autoValidate?: boolean; triggerToNodes?: Record<string, string[]> };

/**
 * A copy, because two servers in one process share the user's object. Uses the constructor (3 to 5 µs), because a clone
 * by prototype would lack private methods.
 */
export function boundCopy(graph: RunnableGraph, { checkpointer, store }: GraphBindings): RunnableGraph {
  const { autoValidate, triggerToNodes } = graph as PregelFields;
  const Constructor = graph.constructor as new (fields: Partial<PregelFields>) => RunnableGraph;
  return new Constructor({
    ...graph,
    // The constructor changes these two.
    channels: { ...graph.channels },
    nodes: withoutPrototype(graph.nodes),
    triggerToNodes: autoValidate ? {} : triggerToNodes,
    ...(checkpointer ? { checkpointer } : {}),
    ...(store ? { store } : {}),
  });
}

/**
 * The state that LangGraph shows of a checkpoint, which need not be stored like this.
 * @param saved a tuple of a checkpointer
 */
export const stateOf = (
  graph: RunnableGraph,
  saved: Pick<CheckpointTuple, "config" | "checkpoint">,
  { appliesWrites, subgraphs = false }: { appliesWrites: boolean; subgraphs?: boolean },
): Promise<StateSnapshot> => {
  const stored = graph.checkpointer;
  const { thread_id, checkpoint_ns, checkpoint_id } = saved.config.configurable as Record<string, string>;
  const checkpointer: Partial<BaseCheckpointSaver> = {
    getTuple: ({ configurable }) =>
      typeof stored === "object" && (configurable?.["checkpoint_ns"] ?? "") !== checkpoint_ns
        ? stored.getTuple({ configurable })
        : Promise.resolve(saved as CheckpointTuple),
    ...(typeof stored === "object" && {
      // Older savers have none, and LangGraph asks only for delta channels.
      getDeltaChannelHistory: (asked) => stored.getDeltaChannelHistory(asked),
    }),
  };
  const reading = boundCopy(graph, { checkpointer: checkpointer as BaseCheckpointSaver });
  // LangGraph applies the pending writes unless an id is given.
  const place = appliesWrites ? { thread_id, checkpoint_ns } : { thread_id, checkpoint_ns, checkpoint_id };
  return reading.getState({ configurable: place }, { subgraphs });
};
