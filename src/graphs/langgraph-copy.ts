import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { resolve } from "import-meta-resolve";
import type { Logger } from "../platform/lib/logger.ts";
import {
  classesIn,
  PLAIN_CLASSES,
  type LangGraphModules,
  type ValueClasses,
} from "../state/values/classes.ts";
import { createLangSmith, type MakeTracer } from "./langsmith.ts";
import { createRunTreesLazily } from "./lazy-run-trees.ts";
import { giveChunks } from "./model-chunks.ts";
import { traceModels, traceNodes, traceTools } from "./trace/patches.ts";
import { currentConfigIn } from "./trace/scope.ts";

const LANGGRAPH = "@langchain/langgraph";
const PREGEL = "@langchain/langgraph/pregel";
const CHAT_MODELS = "@langchain/core/language_models/chat_models";
const SINGLETONS = "@langchain/core/singletons";
const TOOLS = "@langchain/core/tools";

type Module<Name extends keyof LangGraphModules> = LangGraphModules[Name];
type Load = (specifier: string) => Promise<unknown> | unknown;

const modulesBy = async (load: Load): Promise<LangGraphModules> => {
  const loading = (await load("@langchain/core/load")) as Pick<LangGraphModules, "load">;
  // Already loaded by `load` above.
  const chatModels = await load(CHAT_MODELS);
  const singletons = await load(SINGLETONS);
  giveChunks(chatModels);
  createRunTreesLazily(singletons);
  const currentConfig = currentConfigIn(singletons);
  traceModels(chatModels, currentConfig);
  const langgraph = (await load(LANGGRAPH)) as Module<"langgraph">;
  // Already loaded by LangGraph.
  traceTools(await load(TOOLS), currentConfig);
  traceNodes(await load(PREGEL));
  return {
    langgraph,
    checkpoint: (await load("@langchain/langgraph-checkpoint")) as Module<"checkpoint">,
    messages: (await load("@langchain/core/messages")) as Module<"messages">,
    load: (text) => loading.load(text),
  };
};

/** Undefined if `find` throws. */
const found = <Place>(find: () => Place): Place | undefined => {
  try {
    return find();
  } catch {
    return undefined;
  }
};

const isOf = (graph: object, module: unknown): boolean => {
  const { Pregel } = module as { Pregel?: new () => object };
  return Pregel !== undefined && graph instanceof Pregel;
};

const once = <Value>(find: (key: string) => Value): ((key: string) => Value) => {
  const known = new Map<string, { value: Value }>();
  return (key) => {
    const entry = known.get(key) ?? { value: find(key) };
    known.set(key, entry);
    return entry.value;
  };
};

/** A copy of LangGraph, with its LangChain. */
export interface LangGraphCopy {
  classes: ValueClasses;
  /** Undefined while tracing to LangSmith is off. */
  makeTracer?: MakeTracer | undefined;
}

/**
 * A graph's file may resolve to other classes than this server's; a bundled copy gets compatible classes. Cached,
 * because each search took as long as loading a graph.
 */
export const createCopyFinder = (logger: Logger) => {
  const langSmith = createLangSmith(logger);
  const copyBy = async (load: Load): Promise<LangGraphCopy> => {
    const classes = classesIn(await modulesBy(load));
    return { classes, makeTracer: await langSmith.connect(load) };
  };
  const requiredCopy = once((entry) => {
    const require = createRequire(entry);
    return copyBy((name) => require(name) as unknown);
  });
  const importedCopy = once((entry) => copyBy((name) => import(resolve(name, entry))));
  const importedEntry = once((folder) => found(() => resolve(LANGGRAPH, folder)));

  /**
   * The copy from `require`. Node loads a package separately for `require` and `import`, and the graph shows which
   * classes it uses.
   */
  const required = (file: string, graph: object | undefined): Promise<LangGraphCopy> | undefined => {
    const require = createRequire(file);
    const entry = found(() => require.resolve(LANGGRAPH));
    if (entry === undefined || require.cache[entry] === undefined) return undefined;
    return graph === undefined || isOf(graph, require(PREGEL)) ? requiredCopy(entry) : undefined;
  };
  const imported = (file: string): Promise<LangGraphCopy> | undefined => {
    const entry = importedEntry(new URL(".", pathToFileURL(file)).href);
    return entry === undefined ? undefined : importedCopy(entry);
  };

  return {
    copyOf: async (file: string, graph: object | undefined): Promise<LangGraphCopy> =>
      (await (required(file, graph) ?? imported(file))) ?? { classes: PLAIN_CLASSES },
    /** Sends the traces that wait for LangSmith. */
    close: () => langSmith.close(),
  };
};
