import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";

interface LogOrigin {
  run_id?: string;
  thread_id?: string;
  graph_id?: string;
  node?: string;
}

export const logOrigin = (): LogOrigin => {
  const { metadata = {}, configurable = {} } =
    (AsyncLocalStorageProviderSingleton.getRunnableConfig() as
      { metadata?: Record<string, unknown>; configurable?: Record<string, unknown> } | undefined) ?? {};
  const named = {
    run_id: metadata.run_id ?? configurable.run_id,
    thread_id: metadata.thread_id ?? configurable.thread_id,
    graph_id: metadata.graph_id ?? configurable.graph_id,
    node: metadata.langgraph_node,
  };
  return Object.fromEntries(Object.entries(named).filter(([, value]) => typeof value === "string"));
};
