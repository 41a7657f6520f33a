/**
 * LangChain creates a run tree of LangSmith for each node, branch and write, also while tracing is off. That was about a
 * tenth of a run's CPU, so this file fills a tree only when code reads its fields.
 */

/** The parts of `@langchain/core` (1.2.13) and `langsmith` used here. */
interface RunTree {
  tracingEnabled?: boolean;
  extra?: object;
  [CONTEXT_VARIABLES]?: unknown;
}
interface Storage {
  getStore(): RunTree | undefined;
  run<Result>(store: RunTree | undefined, callback: () => Result): Result;
}
interface Config {
  callbacks?: readonly unknown[] | { handlers?: readonly unknown[] } | null;
}
type RunWithConfig = <Result>(
  this: Provider,
  config: Config | undefined,
  callback: () => Result,
  avoidCreatingRootRunTree?: boolean,
) => Result;
interface Provider {
  getInstance(): Storage;
  runWithConfig: RunWithConfig;
}

/** As LangChain names such a tree. */
const UNTRACED = { name: "<runnable_lambda>", tracingEnabled: false };

const CHILD_CONFIG = Symbol.for("lc:child_config");
const CONTEXT_VARIABLES = Symbol.for("lc:context_variables");
/** From the symbol registry: two copies of this package may share one LangChain. */
const IS_LAZY = Symbol.for("threadloom.lazy-run-trees");

const isList: (value: unknown) => value is readonly unknown[] = Array.isArray;

/** As LangChain's `isTracingEnabled`. */
export const isTracingOn = (): boolean => {
  const { env } = process;
  return (
    env["LANGSMITH_TRACING"] === "true" ||
    env["LANGCHAIN_TRACING_V2"] === "true" ||
    env["LANGSMITH_TRACING_V2"] === "true" ||
    env["LANGCHAIN_TRACING"] === "true"
  );
};

/**
 * Whether a tracer could be involved: context variables also hold the hooks of `registerConfigureHook`. Reads the
 * environment for each call, because a graph may set it.
 */
const mayBeTraced = (before: RunTree | undefined, callbacks: Config["callbacks"]): boolean => {
  if (before?.[CONTEXT_VARIABLES] !== undefined || before?.tracingEnabled === true) return true;
  const handlers = isList(callbacks) ? callbacks : callbacks?.handlers;
  if (handlers !== undefined)
    for (const handler of handlers)
      if ((handler as { name?: unknown } | undefined)?.name === "langchain_tracer") return true;
  return isTracingOn();
};

/** A class of trees that fill themselves with the fields of a tree like `sample` when one of these is first used. */
const lazyClassOf = (sample: RunTree) => {
  const Tree = sample.constructor as new (fields: object) => RunTree;
  class LazyRunTree implements RunTree {
    readonly tracingEnabled = false;
    readonly extra: object;
    constructor(config: Config | undefined) {
      this.extra = { metadata: {}, [CHILD_CONFIG]: config };
    }
  }
  Object.setPrototypeOf(LazyRunTree.prototype, Object.getPrototypeOf(sample) as object);
  const fill = (tree: RunTree): void => {
    const { tracingEnabled: _off, extra: _extra, ...fields } = new Tree(UNTRACED);
    for (const [name, value] of Object.entries(fields))
      Object.defineProperty(tree, name, { value, configurable: true, enumerable: true, writable: true });
  };
  for (const name of Object.keys(sample)) {
    if (name === "tracingEnabled" || name === "extra") continue;
    Object.defineProperty(LazyRunTree.prototype, name, {
      configurable: true,
      get(this: RunTree): unknown {
        fill(this);
        return Reflect.get(this, name);
      },
      set(this: RunTree, value: unknown) {
        fill(this);
        Reflect.set(this, name, value);
      },
    });
  }
  return LazyRunTree;
};

/**
 * LangChain's own function makes the tree where a tracer could be involved.
 * @param module `@langchain/core/singletons`; unchanged if the expected parts are missing
 */
export const createRunTreesLazily = (module: unknown): void => {
  const { AsyncLocalStorageProviderSingleton: provider } = module as {
    AsyncLocalStorageProviderSingleton?: Provider;
  };
  if (typeof provider?.runWithConfig !== "function" || IS_LAZY in provider.runWithConfig) return;
  const original = provider.runWithConfig;
  let LazyRunTree: ReturnType<typeof lazyClassOf> | undefined;
  const runWithConfig: RunWithConfig = function (config, callback, avoidCreatingRootRunTree) {
    const storage = this.getInstance();
    const before = storage.getStore();
    if (mayBeTraced(before, config?.callbacks))
      return original.call(this, config, callback, avoidCreatingRootRunTree) as never;
    if (avoidCreatingRootRunTree) return storage.run(undefined, callback);
    if (LazyRunTree === undefined) {
      const sample = original.call(this, undefined, () => storage.getStore()) as RunTree | undefined;
      // Without an AsyncLocalStorage.
      if (sample === undefined) return storage.run(undefined, callback);
      LazyRunTree = lazyClassOf(sample);
    }
    return storage.run(new LazyRunTree(config), callback);
  };
  provider.runWithConfig = Object.assign(runWithConfig, { [IS_LAZY]: true });
};
