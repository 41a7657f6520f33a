import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { resolve } from "import-meta-resolve";
import { classesIn, PLAIN_CLASSES, type LangGraphModules, type ValueClasses } from "../values/classes.ts";

const LANGGRAPH = "@langchain/langgraph";
/** What its graphs are instances of. */
const PREGEL = "@langchain/langgraph/pregel";

type Module<Name extends keyof LangGraphModules> = LangGraphModules[Name];
type Load = (specifier: string) => Promise<unknown> | unknown;

const modulesBy = async (load: Load): Promise<LangGraphModules> => {
  const loading = (await load("@langchain/core/load")) as Pick<LangGraphModules, "load">;
  return {
    langgraph: (await load(LANGGRAPH)) as Module<"langgraph">,
    checkpoint: (await load("@langchain/langgraph-checkpoint")) as Module<"checkpoint">,
    messages: (await load("@langchain/core/messages")) as Module<"messages">,
    load: (text) => loading.load(text),
  };
};

/** Undefined if `find` finds nothing. */
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

/**
 * The copy that a file gets by `require`, if it has: a package is loaded once for `require` and once for `import`, and the two
 * have different classes. Which one a graph comes from, the graph itself says; a factory has made none yet.
 */
const requiredCopy = (file: string, graph: object | undefined): Load | undefined => {
  const require = createRequire(file);
  const entry = found(() => require.resolve(LANGGRAPH));
  if (entry === undefined || require.cache[entry] === undefined) return undefined;
  const ofCopy = createRequire(entry);
  return graph === undefined || isOf(graph, require(PREGEL)) ? (name) => ofCopy(name) as unknown : undefined;
};

const importedCopy = (file: string): Load | undefined => {
  const entry = found(() => resolve(LANGGRAPH, pathToFileURL(file).href));
  return entry === undefined ? undefined : (name) => import(resolve(name, entry));
};

/**
 * The classes of the copy of LangGraph that the graph of a file uses, found as the file finds it: `import` and `require` look
 * where the file stands, which may be elsewhere than this server. What was bundled into the file can't be found; it is given
 * classes that are like LangGraph's.
 */
export const classesOfCopy = async (file: string, graph: object | undefined): Promise<ValueClasses> => {
  const load = requiredCopy(file, graph) ?? importedCopy(file);
  if (load === undefined) return PLAIN_CLASSES;
  return classesIn(await modulesBy(load));
};
