import type { GraphConfiguration } from "./runnable-graph.ts";

/** Keys of `configurable` that are the server's, whatever a client sends. */
const SERVER_OWNED =
  /^(thread_id|thread_ts|run_id|run_attempt|graph_id|assistant_id|checkpoint_ns|checkpoint_id|checkpoint_map|langgraph_auth_.*|__pregel_.*)$/;

/** What a client may set of `configurable`. */
export const withoutServerOwned = (configurable: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(configurable).filter(([key]) => !SERVER_OWNED.test(key)));

export const isEmpty = (value: object): boolean => Object.keys(value).length === 0;

export interface Given {
  /** What clients gave as `config.configurable`: the assistant's, the thread's and, in a run, the request's. */
  configurable: Record<string, unknown>;
  /** Headers of the request that made the run; they win over what its body says: a proxy sets them. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** The same of `context`. */
  context: Record<string, unknown>;
  /** The server's own: `thread_id`, `graph_id` and the like. */
  ids: Record<string, string>;
}

/**
 * What a graph is given to configure itself by. Graphs of both generations are served: what was given as context is
 * found in configurable, and the other way round.
 */
export const toGraphConfiguration = ({
  configurable,
  headers,
  context,
  ids,
}: Given): Required<Pick<GraphConfiguration, "configurable" | "context">> => {
  const own = withoutServerOwned(configurable);
  return {
    context: isEmpty(context) ? own : context,
    configurable: { ...withoutServerOwned(context), ...own, ...headers, ...ids },
  };
};
