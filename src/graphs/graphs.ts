import type { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import type { Logger } from "../platform/lib/logger.ts";
import { type GraphEntry, GraphLoadError, messageOf, readGraphConfig } from "./project/langgraph-json.ts";
import { graphSchemas, isDeclaredByTypes, type GraphSchemas } from "./json-schemas.ts";
import {
  type RunnableGraph,
  boundCopy,
  outputKeysOf,
  runtimeFor,
  compiledGraph,
  type AccessContext,
  type GraphBindings,
  type GraphConfiguration,
  type ServerRuntime,
} from "./runnable-graph.ts";
import type { GraphSourceSchemas, SourceReader } from "./source/source-schemas.ts";
import type { ProjectKeys } from "../platform/config/project-keys.ts";
import { graphNotFound, invalid } from "../platform/domain/errors.ts";
import type { WithoutContents } from "../platform/lib/contents.ts";
import { untilAborted } from "../platform/lib/until-aborted.ts";
import type { ClassedSaver } from "../state/checkpoints/types.ts";
import type { ValueClasses } from "../state/values/classes.ts";
import { createCopyFinder, type LangGraphCopy } from "./langgraph-copy.ts";
import type { ChosenTracer } from "./langsmith.ts";
import { drawGraph, type GraphDrawing } from "./drawing.ts";
import { placeText } from "./error-place.ts";
import { createModuleLoader } from "./modules.ts";

const LATE_MS = 10_000;

export interface GraphDescription {
  schemas: GraphSchemas;
  /** See `outputKeysOf`. */
  outputKeys: readonly string[] | undefined;
}

export const NO_SOURCE: GraphSourceSchemas = new Map();

/** Every method throws `graphNotFound` for an id that `langgraph.json` does not name. */
export interface Graphs {
  readonly ids: readonly string[];
  has(id: string): boolean;
  description(id: string): string | undefined;
  /** A factory builds the graph from the configuration for each use. Other graphs ignore the configuration. */
  isFactory(id: string): boolean;
  /** Classes of the graph's own LangGraph copy. The graph's arguments must be instances of them. */
  classesOf(id: string): ValueClasses;
  /** A callback for a run that names its project or example of LangSmith; undefined while tracing is off. */
  tracerOf(id: string, chosen: ChosenTracer): BaseCallbackHandler | undefined;
  /** Calls a factory each time; its errors pass through. With `bindings` the result is a copy for this call. */
  resolve(
    id: string,
    config?: GraphConfiguration,
    bindings?: GraphBindings,
    accessContext?: AccessContext,
  ): Promise<RunnableGraph>;
  /**
   * Returns a shared object, `provisional` until the source of a graph declared by types is read. Throws `invalid` if a
   * factory fails for this config.
   */
  schemas(id: string, config?: GraphConfiguration): Promise<GraphSchemas>;
  /** As `schemas`. */
  describe(id: string, config?: GraphConfiguration): Promise<GraphDescription>;
  /** Takes seconds, in another process. */
  readAhead(): void;
  /** @param xray `true` opens all subgraphs, a number that many levels */
  drawing(id: string, xray?: boolean | number, config?: GraphConfiguration): Promise<GraphDrawing>;
  /** By namespace (`node`, or `node|node` with `recurse`). */
  subgraphs(
    id: string,
    namespace?: string,
    recurse?: boolean,
    config?: GraphConfiguration,
  ): Promise<Record<string, GraphSchemas>>;
  /** Whether only the source could tell the types of some inputs. False for a factory. */
  hasUntypedInputs(id: string): boolean;
  /** For files that changed. An error keeps the current graphs. Changes `ids` in place, because other parts hold the list. */
  reload(): Promise<void>;
  /** Sends the traces that wait for LangSmith. */
  close(): Promise<void>;
}

export interface LoadGraphsOptions extends GraphBindings {
  configPath: string;
  /** Keys that the environment sets. */
  projectKeys?: ProjectKeys | undefined;
  logger: Logger;
  /** Called at each load. The graphs close the reader. */
  openSource?: (() => SourceReader | undefined) | undefined;
  /** Stops waiting for loading. */
  signal?: AbortSignal | undefined;
  /** Milliseconds until the log names a graph that still loads. */
  lateMs?: number | undefined;
}

type GraphFactory = (config: GraphConfiguration, runtime: ServerRuntime) => unknown;

interface LoadedGraph extends LangGraphCopy {
  entry: GraphEntry;
  /** Undefined for a factory. */
  graph: RunnableGraph | undefined;
  factory: GraphFactory | undefined;
}

class NoGraphError extends Error implements WithoutContents {
  readonly hidesContents = true;
}

interface Edition {
  readonly loaded: ReadonlyMap<string, LoadedGraph>;
  readonly source: SourceReader | undefined;
  /** Of graphs that answer the same each time. */
  readonly schemas: Map<string, GraphSchemas>;
  close(): Promise<void>;
}

/** @param number see createModuleLoader */
const loadEdition = async (options: LoadGraphsOptions, number: number | undefined): Promise<Edition> => {
  const { configPath, projectKeys, logger, checkpointer, store, signal, lateMs = LATE_MS } = options;
  const { entries } = await readGraphConfig(configPath, projectKeys);
  const modules = await createModuleLoader(entries, number);
  const copies = createCopyFinder(logger);

  /** The log names a graph that still loads, because a top-level `await` may never end. */
  const watched = async (entry: GraphEntry): Promise<LoadedGraph> => {
    const timer = setTimeout(() => {
      if (signal?.aborted === true) return;
      logger.warn(
        { graph_id: entry.id, file: entry.file },
        `graph '${entry.id}' has not finished loading after ${lateMs / 1_000} seconds. Check whether its module awaits ` +
          "something that never comes.",
      );
    }, lateMs).unref();
    return await load(entry).finally(() => clearTimeout(timer));
  };
  const load = async (entry: GraphEntry): Promise<LoadedGraph> => {
    const startedAt = performance.now();
    const { exported } = await modules.load(entry);
    const value = await unlessItFails(entry, exported);
    const isFactory = typeof value === "function";
    const graph = isFactory ? undefined : await unlessItFails(entry, compiledGraph(value));
    if (!isFactory && !graph) throw notAGraph(entry, value);
    if (graph?.checkpointer && checkpointer) {
      logger.warn(
        { graph_id: entry.id },
        "the graph's own checkpointer is ignored: this server keeps the checkpoints",
      );
    }
    logger.debug({ graph_id: entry.id, ms: Math.round(performance.now() - startedAt) }, "graph loaded");
    const copy = await copies.copyOf(entry.file, graph);
    return {
      entry,
      ...copy,
      graph: graph && boundCopy(graph, withClasses({ checkpointer, store }, copy.classes)),
      factory: isFactory ? (value as GraphFactory) : undefined,
    };
  };

  const results = await untilAborted(signal, Promise.allSettled(entries.map(watched)));
  const failures = results.flatMap((result) =>
    result.status === "rejected" ? [result.reason as unknown] : [],
  );
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) {
    const sentences = failures.map((failure) =>
      failure instanceof Error ? failure.message : String(failure),
    );
    throw new GraphLoadError(sentences.join("\n"), { cause: failures[0] });
  }
  const loaded = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const source = options.openSource?.();
  return {
    loaded: new Map(loaded.map((graph) => [graph.entry.id, graph])),
    source,
    schemas: new Map(),
    async close() {
      source?.close();
      await copies.close();
    },
  };
};

/** @throws GraphLoadError that names each invalid graph */
export async function loadGraphs(options: LoadGraphsOptions): Promise<Graphs> {
  const { checkpointer, store } = options;
  const own: GraphBindings = { checkpointer, store };
  let current = await loadEdition(options, undefined);
  let editions = 1;
  const ids = [...current.loaded.keys()];

  const find = (id: string): LoadedGraph => {
    const found = current.loaded.get(id);
    if (!found) throw graphNotFound(id);
    return found;
  };

  /** Undefined while unknown. */
  const sourceOf = async (id: string): Promise<GraphSourceSchemas | undefined> =>
    current.source === undefined ? NO_SOURCE : await current.source.of(id);
  const marked = (schemas: GraphSchemas, fromSource: GraphSourceSchemas | undefined): GraphSchemas =>
    fromSource === undefined && current.source?.isReading === true
      ? { ...schemas, provisional: true }
      : schemas;
  const schemasOf = async (id: string, graph: RunnableGraph): Promise<GraphSchemas> => {
    const { schemas: kept } = current;
    const known = kept.get(id);
    if (known) return known;
    const fromSource = isDeclaredByTypes(graph) ? await sourceOf(id) : NO_SOURCE;
    const schemas = marked(graphSchemas(id, graph, fromSource?.get("")), fromSource);
    // A factory may build another shape for another config.
    if (find(id).graph !== undefined && fromSource !== undefined) kept.set(id, schemas);
    return schemas;
  };

  const resolve: Graphs["resolve"] = async (id, config = {}, bindings, accessContext = "threads.read") => {
    const { graph, factory, classes } = find(id);
    const all = withClasses(bindings ? { ...own, ...bindings } : own, classes);
    if (graph) return bindings ? boundCopy(graph, all) : graph;
    const given = { ...config, configurable: config.configurable ?? {} };
    const made: unknown = await factory?.(given, runtimeFor(accessContext, given, all.store));
    const compiled = await compiledGraph(made);
    // The message has no path, because callers see it.
    if (!compiled)
      throw new NoGraphError(`The factory of graph '${id}' returned ${kindOf(made)}, not a graph.`);
    return boundCopy(compiled, all);
  };

  /** For schemas and drawings: a factory may fail without a run's configuration. */
  const resolveToDescribe = async (id: string, config?: GraphConfiguration): Promise<RunnableGraph> => {
    const { factory } = find(id);
    return resolve(id, config, undefined, "assistants.read").catch((cause: unknown) => {
      if (!factory) throw cause;
      throw invalid(`Graph '${id}' can't be built from this config: ${messageOf(cause)}.`, cause);
    });
  };

  const describe: Graphs["describe"] = async (id, config) => {
    const graph = await resolveToDescribe(id, config);
    return { schemas: await schemasOf(id, graph), outputKeys: outputKeysOf(graph) };
  };

  return {
    ids,
    has: (id) => current.loaded.has(id),
    description: (id) => find(id).entry.description,
    isFactory: (id) => find(id).factory !== undefined,
    classesOf: (id) => find(id).classes,
    tracerOf: (id, chosen) => find(id).makeTracer?.(chosen),
    resolve,

    schemas: async (id, config) => (await describe(id, config)).schemas,
    describe,

    hasUntypedInputs(id) {
      const { graph } = find(id);
      if (graph === undefined || !isDeclaredByTypes(graph)) return false;
      const { properties } = graphSchemas(id, graph).input_schema;
      return Object.values(properties as object).some((schema: object) => Object.keys(schema).length === 0);
    },

    readAhead() {
      const mayHaveTypes = ({ graph }: LoadedGraph): boolean =>
        graph === undefined || isDeclaredByTypes(graph);
      if ([...current.loaded.values()].some(mayHaveTypes)) current.source?.readAhead();
    },

    drawing: async (id, xray = false, config) => drawGraph(await resolveToDescribe(id, config), xray),

    async subgraphs(id, namespace, recurse = false, config) {
      const found: Record<string, GraphSchemas> = {};
      let asked: Promise<GraphSourceSchemas | undefined> | undefined;
      const graph = await resolveToDescribe(id, config);
      // LangGraph reaches nested namespaces only with `recurse`.
      const goDown = recurse || namespace?.includes("|");
      for await (const [name, subgraph] of graph.getSubgraphsAsync(namespace, goDown)) {
        const fromSource = isDeclaredByTypes(subgraph) ? await (asked ??= sourceOf(id)) : NO_SOURCE;
        found[name] = marked(graphSchemas(id, subgraph, fromSource?.get(name)), fromSource);
      }
      return found;
    },

    async reload() {
      editions += 1;
      const before = current;
      current = await loadEdition(options, editions);
      ids.splice(0, ids.length, ...current.loaded.keys());
      await before.close();
    },
    close: () => current.close(),
  };
}

const isClassed = (checkpointer: object): checkpointer is ClassedSaver => "withClasses" in checkpointer;

const withClasses = ({ checkpointer, ...others }: GraphBindings, classes: ValueClasses): GraphBindings =>
  checkpointer !== undefined && isClassed(checkpointer)
    ? { ...others, checkpointer: checkpointer.withClasses(classes) }
    : { ...others, checkpointer };

const kindOf = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "an array" : `a value of type ${typeof value}`;

async function unlessItFails<Value>({ id, file }: GraphEntry, value: Value | Promise<Value>): Promise<Value> {
  try {
    return await value;
  } catch (cause) {
    const text = `Graph '${id}' (${file}) can't be built: ${messageOf(cause)}.${placeText(cause)}`;
    throw new GraphLoadError(text, { cause });
  }
}

function notAGraph({ id, file, exportName }: GraphEntry, value: unknown): GraphLoadError {
  return new GraphLoadError(
    `Graph '${id}' (${file}): '${exportName}' is ${kindOf(value)}, not a graph. Export a compiled graph, a StateGraph, ` +
      "an agent of createAgent, a promise of one, or a function that returns one.",
  );
}
