import type { RunnableConfig } from "@langchain/core/runnables";
import type { StreamEvent } from "@langchain/core/tracers/log_stream";
import type { StateSnapshot } from "@langchain/langgraph";
import type { BaseCheckpointSaver, BaseStore, CheckpointListOptions } from "@langchain/langgraph-checkpoint";
import { growIds } from "./growing-ids.ts";

/**
 * What this server uses of a compiled graph (LangGraph's `Pregel`). A type of our own, and never an
 * `instanceof`: the user's project may bring another copy of LangGraph than ours.
 */
export interface RunnableGraph {
  readonly name?: string;
  /** What the graph is bound to (`withConfig`). */
  config?: RunnableConfig;
  readonly nodes: Record<string, unknown>;
  readonly channels: Record<string, unknown>;
  readonly inputChannels: string | string[];
  /** Of `compile({ transformers })`; graphs of older versions of LangGraph have none. */
  readonly streamTransformers?: unknown;
  readonly outputChannels: string | string[];
  readonly streamChannelsAsIs: string | string[];
  readonly streamChannelsList: string[];
  /** The `StateGraph` that it was compiled from; a graph of the functional API has none. */
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

/** The part of LangGraph's `Pregel` that turns a checkpoint into a state. Internal to LangGraph, hence looked for. */
export interface SnapshotMaker {
  _prepareStateSnapshot(options: {
    config: RunnableConfig;
    saved: unknown;
    applyPendingWrites: boolean;
  }): Promise<unknown>;
}

export const makesSnapshots = (graph: object): graph is SnapshotMaker =>
  "_prepareStateSnapshot" in graph && typeof graph._prepareStateSnapshot === "function";

/** Options of one run, as `Pregel.stream` takes them. */
export interface GraphRunOptions extends RunnableConfig {
  context?: unknown;
  streamMode?: string | string[];
  subgraphs?: boolean;
  version?: "v2";
  interruptBefore?: "*" | string[];
  interruptAfter?: "*" | string[];
  durability?: "exit" | "async" | "sync";
  outputKeys?: string | string[];
  checkpointer?: BaseCheckpointSaver;
  store?: BaseStore;
}

/** What LangGraph draws, before we make it fit for clients. */
export interface DrawableGraph {
  readonly nodes: Record<string, { metadata?: Record<string, unknown> }>;
  toJSON(): { nodes: Record<string, unknown>[]; edges: Record<string, unknown>[] };
}

/** The part of a run's config that a factory may build its graph from. */
export interface GraphConfiguration {
  configurable?: Record<string, unknown>;
  context?: unknown;
  metadata?: Record<string, unknown>;
}

/** What the graph that a factory is to make is for, in the words of the SDK's `ServerRuntime`. */
export type AccessContext = "threads.create_run" | "threads.read" | "threads.update" | "assistants.read";

/** The second argument of a factory. `executionRuntime` is null where no node of the graph is executed. */
export interface ServerRuntime {
  accessContext: AccessContext;
  executionRuntime: { context: unknown } | null;
  /** The server's store, as nodes get it. */
  store: BaseStore | undefined;
  /** Who the graph is made for, as `authenticate` said; null: no user. */
  user: unknown;
}

/** What a factory is told of the graph that it is to make. */
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

/** What the server puts in the place of a graph's own checkpointer and store. */
export interface GraphBindings {
  checkpointer?: BaseCheckpointSaver;
  store?: BaseStore;
  /** Asked before each step of the graph itself, not of its subgraphs: what the step has to wait for. */
  beforeStep?: () => Promise<void> | undefined;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

const isCompiled = (value: unknown): value is RunnableGraph =>
  isObject(value) &&
  value.lg_is_pregel === true &&
  isObject(value.nodes) &&
  isObject(value.channels) &&
  typeof value.stream === "function";

/**
 * The compiled graph in whatever a user exports or a factory returns: a compiled graph, a builder that was
 * not compiled, an agent of `createAgent` (it wraps its graph), or a promise of one of these. Undefined if
 * it is none of them.
 * @throws whatever compiling the builder, or the promise, throws
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

/** LangGraph asks `name in nodes` of whatever a `Send` names: `constructor` is no node of a graph that has none. */
const withoutPrototype = (nodes: RunnableGraph["nodes"]): RunnableGraph["nodes"] =>
  Object.getPrototypeOf(nodes) === null
    ? nodes
    : (Object.assign(Object.create(null), nodes) as RunnableGraph["nodes"]);

type PregelFields = RunnableGraph & { autoValidate?: boolean; triggerToNodes?: Record<string, string[]> };

/**
 * A copy of a compiled graph with the server's checkpointer and store. The user's own object stays as it
 * was: two servers in one process share it through the module cache. It is made as `Pregel.withConfig` makes
 * one, by the graph's own constructor; a clone by prototype would lack the private methods. Measured: 3 to
 * 5 microseconds.
 */
export function boundCopy(
  graph: RunnableGraph,
  { checkpointer, store, beforeStep }: GraphBindings,
): RunnableGraph {
  const { autoValidate, triggerToNodes } = graph as PregelFields;
  const Constructor = graph.constructor as new (fields: Partial<PregelFields>) => RunnableGraph;
  const copy = new Constructor({
    ...graph,
    // The constructor writes into these two.
    channels: { ...graph.channels },
    nodes: withoutPrototype(graph.nodes),
    triggerToNodes: autoValidate ? {} : triggerToNodes,
    ...(checkpointer ? { checkpointer } : {}),
    ...(store ? { store } : {}),
  });
  growIds(copy);
  if (beforeStep !== undefined) delaySteps(copy as RunnableGraph & SteppingGraph, beforeStep);
  return copy;
}

/**
 * The options of a run with callbacks, such that those bound to the graph are called, too. LangGraph before 1.1 replaces
 * bound callbacks by those of the run. `graph`: a copy of this run's own.
 */
export const withBoundCallbacks = (graph: RunnableGraph, options: GraphRunOptions): GraphRunOptions => {
  const bound = graph.config?.callbacks;
  if (!Array.isArray(options.callbacks) || !Array.isArray(bound)) return options;
  graph.config = { ...graph.config, callbacks: undefined };
  return { ...options, callbacks: [...options.callbacks, ...bound] };
};

/** Not LangGraph's public interface (1.4.18): where it is missing, nothing is asked before a step. */
interface SteppingGraph {
  _runLoop?(parameters: { loop: { tick(options: unknown): Promise<boolean> } }): Promise<unknown>;
}

const delaySteps = (graph: SteppingGraph, beforeStep: () => Promise<void> | undefined): void => {
  const runLoop = graph._runLoop;
  if (typeof runLoop !== "function") return;
  graph._runLoop = function (parameters) {
    const { loop } = parameters;
    const tick = loop.tick.bind(loop);
    loop.tick = async (options) => {
      await beforeStep();
      return await tick(options);
    };
    return runLoop.call(this, parameters);
  };
};
