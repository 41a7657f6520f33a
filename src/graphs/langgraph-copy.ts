import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { resolve } from "import-meta-resolve";
import {
  classesIn,
  PLAIN_CLASSES,
  type LangGraphModules,
  type ValueClasses,
} from "../state/values/classes.ts";
import { giveChunks } from "./model-chunks.ts";

const LANGGRAPH = "@langchain/langgraph";
/** What its graphs are instances of. */
const PREGEL = "@langchain/langgraph/pregel";
const CHAT_MODELS = "@langchain/core/language_models/chat_models";

type Module<Name extends keyof LangGraphModules> = LangGraphModules[Name];
type Load = (specifier: string) => Promise<unknown> | unknown;

const modulesBy = async (load: Load): Promise<LangGraphModules> => {
  const loading = (await load("@langchain/core/load")) as Pick<LangGraphModules, "load">;
  // `load` above has loaded it already.
  giveChunks(await load(CHAT_MODELS));
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

/** Looks something up once for each key. */
const once = <Value>(find: (key: string) => Value): ((key: string) => Value) => {
  const known = new Map<string, { value: Value }>();
  return (key) => {
    const entry = known.get(key) ?? { value: find(key) };
    known.set(key, entry);
    return entry.value;
  };
};

type Classes = Promise<ValueClasses>;

/**
 * Says which classes the graph of a file uses: those of its copy of LangGraph, found as the file finds it. `import` and `require`
 * look where the file stands, which may be elsewhere than this server. What was bundled into the file can't be found; it is given
 * classes that are like LangGraph's. To be made for each load of the graphs: what was found is kept, since most files of a project
 * find the same, and to look for it took as long as to load a graph.
 */
export const createCopyFinder = () => {
  const requiredClasses = once((entry): Classes => {
    const require = createRequire(entry);
    return modulesBy((name) => require(name) as unknown).then(classesIn);
  });
  const importedClasses = once((entry): Classes =>
    modulesBy((name) => import(resolve(name, entry))).then(classesIn),
  );
  const importedEntry = once((folder) => found(() => resolve(LANGGRAPH, folder)));

  /**
   * The copy that a file gets by `require`, if it has: a package is loaded once for `require` and once for `import`, and the two
   * have different classes. Which one a graph comes from, the graph itself says; a factory has made none yet.
   */
  const required = (file: string, graph: object | undefined): Classes | undefined => {
    const require = createRequire(file);
    const entry = found(() => require.resolve(LANGGRAPH));
    if (entry === undefined || require.cache[entry] === undefined) return undefined;
    return graph === undefined || isOf(graph, require(PREGEL)) ? requiredClasses(entry) : undefined;
  };
  const imported = (file: string): Classes | undefined => {
    const entry = importedEntry(new URL(".", pathToFileURL(file)).href);
    return entry === undefined ? undefined : importedClasses(entry);
  };

  return {
    classesOf: async (file: string, graph: object | undefined): Classes =>
      (await (required(file, graph) ?? imported(file))) ?? PLAIN_CLASSES,
  };
};
