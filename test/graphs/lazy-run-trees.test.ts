// Gives LangChain its AsyncLocalStorage.
import "@langchain/langgraph";
import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import { afterEach, expect, test, vi } from "vitest";
import { createRunTreesLazily } from "../../src/graphs/lazy-run-trees.ts";

/** The run trees that LangChain creates for each call, while tracing is off. */

type Provider = typeof AsyncLocalStorageProviderSingleton;
interface Tree {
  id: string;
  name: string;
  trace_id: string;
  dotted_order: string;
  tracingEnabled: boolean;
  child_runs: unknown[];
  extra: Record<symbol, unknown>;
  createChild(fields: object): Tree & { parent_run: Tree };
}

afterEach(() => void vi.unstubAllEnvs());

/** LangChain's provider as it is published. Its calls are counted. */
const providers = () => {
  const published = Object.getPrototypeOf(AsyncLocalStorageProviderSingleton) as Provider;
  const provider = Object.create(published) as Provider;
  const original = vi.fn(published.runWithConfig);
  provider.runWithConfig = original as never;
  createRunTreesLazily({ AsyncLocalStorageProviderSingleton: provider });
  const treeOf = (config?: object): Tree =>
    provider.runWithConfig(config as never, () => provider.getInstance().getStore() as Tree);
  // The first call takes a sample.
  treeOf();
  original.mockClear();
  return { provider, original, published: Object.create(published) as Provider, treeOf };
};

test("a call finds its configuration, without a run tree by LangChain", () => {
  const { provider, original } = providers();
  const config = { tags: ["a"], callbacks: [{ name: "mine" }] };
  const found = provider.runWithConfig(config as never, () => provider.getRunnableConfig());
  expect(found).toBe(config);
  expect(original).not.toHaveBeenCalled();
});

test.each([null, undefined, [], {}, { handlers: [] }])(
  "a call with the callbacks %j needs no tree of LangChain",
  (callbacks) => {
    const { original, treeOf } = providers();
    expect(treeOf({ callbacks }).id).toMatch(/^[0-9a-f-]{36}$/);
    expect(original).not.toHaveBeenCalled();
  },
);

test("a tree that code reads has the fields, the class and the children of LangChain's", () => {
  const { published, treeOf } = providers();
  const theirs = published.runWithConfig({}, () => published.getInstance().getStore()) as Tree;
  for (const read of ["id", "child_runs", "dotted_order"] as const) {
    const ours = treeOf({});
    expect(ours[read]).toBeDefined();
    expect(Object.keys(ours).sort()).toEqual(Object.keys(theirs).sort());
    expect(ours).toBeInstanceOf(theirs.constructor);
    expect(ours.id).toMatch(/^[0-9a-f-]{36}$/);
    expect(ours).toMatchObject({
      name: theirs.name,
      trace_id: ours.id,
      tracingEnabled: false,
      child_runs: [],
    });
    expect(ours.extra).toEqual(theirs.extra);
    const child = ours.createChild({ name: "child" });
    expect(child.parent_run).toBe(ours);
    expect(child.dotted_order.startsWith(`${ours.dotted_order}.`)).toBe(true);
  }
});

test("a field that code sets stays, and the others are of one tree", () => {
  const tree = providers().treeOf();
  tree.name = "renamed";
  expect(tree.name).toBe("renamed");
  expect(tree.id).toBe(tree.trace_id);
});

test.each(["LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING"])(
  "with %s LangChain creates the tree, also if a graph sets it later",
  (name) => {
    const { original, treeOf } = providers();
    vi.stubEnv(name, "true");
    treeOf({});
    expect(original).toHaveBeenCalledTimes(1);
    vi.stubEnv(name, "false");
    treeOf({});
    expect(original).toHaveBeenCalledTimes(1);
  },
);

test("with a tracer among the callbacks LangChain creates the tree", () => {
  const { original, treeOf } = providers();
  const tracer = { name: "langchain_tracer" };
  treeOf({ callbacks: [tracer] });
  expect(original).toHaveBeenCalledTimes(1);
  expect(original.mock.calls[0]?.[0]).toEqual({ callbacks: [tracer] });
});

test("within a traced call, or one with context variables, LangChain creates the tree", () => {
  const { provider, original, treeOf } = providers();
  const within = (store: object): void => void provider.getInstance().run(store as never, () => treeOf({}));
  within({ tracingEnabled: true });
  expect(original).toHaveBeenCalledTimes(1);
  // `registerConfigureHook` stores its hooks among them.
  within({ [Symbol.for("lc:context_variables")]: { hooks: [] } });
  expect(original).toHaveBeenCalledTimes(2);
});

test("a call without a root tree has none", () => {
  const { provider } = providers();
  const found = provider.runWithConfig({}, () => provider.getInstance().getStore(), true);
  expect(found).toBeUndefined();
});

test("a copy of LangChain without the expected parts stays as it is, and a patched one is not patched twice", () => {
  createRunTreesLazily({});
  const { provider } = providers();
  const { runWithConfig } = provider;
  createRunTreesLazily({ AsyncLocalStorageProviderSingleton: provider });
  expect(provider.runWithConfig).toBe(runWithConfig);
});
