import type { GraphConfiguration } from "./runnable-graph.ts";

/** Keys of `configurable` that are the server's, whatever a client sends. */
const SERVER_OWNED =
  /^(thread_id|thread_ts|run_id|run_attempt|graph_id|assistant_id|checkpoint_ns|checkpoint_id|checkpoint_map|langgraph_auth_.*|__pregel_.*)$/;

/** What a client may set of `configurable`. */
export const withoutServerOwned = (configurable: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(configurable).filter(([key]) => !SERVER_OWNED.test(key)));

/** Keys that say who the user is: nobody but the server does. */
const AUTH_FIELD = /^langgraph_auth_/;

/** The same object if it says nothing of users. */
export const withoutAuthFields = <Fields extends Record<string, unknown>>(fields: Fields): Fields =>
  Object.keys(fields).some((key) => AUTH_FIELD.test(key))
    ? (Object.fromEntries(Object.entries(fields).filter(([key]) => !AUTH_FIELD.test(key))) as Fields)
    : fields;

/** A config whose `configurable` says nothing of users. */
export const withoutAuth = <Config extends Record<string, unknown>>(config: Config): Config => {
  const { configurable } = config;
  if (typeof configurable !== "object" || configurable === null) return config;
  const own = withoutAuthFields(configurable as Record<string, unknown>);
  return own === configurable ? config : { ...config, configurable: own };
};

export const isEmpty = (value: object): boolean => Object.keys(value).length === 0;

/** What a graph is told of the user whose run it is; the names are the hosted service's. */
export const authConfigurable = (user: Readonly<Record<string, unknown>>): Record<string, unknown> => ({
  langgraph_auth_user: user,
  langgraph_auth_user_id: user.identity,
  langgraph_auth_permissions: user.permissions ?? [],
});

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
    context: isEmpty(context) ? own : withoutAuthFields(context),
    configurable: { ...withoutServerOwned(context), ...own, ...headers, ...ids },
  };
};

/**
 * What LangGraph's callbacks are told of a run's metadata and tags at most. LangChain copies them one by one for each call of a
 * model or a tool, and copies all that it has for each of them: 1,100 keys, 10 KB of a request, held the event loop for more
 * than a minute, 2,000 tags for ten seconds; 100 cost a few milliseconds.
 */
const METADATA_KEYS_AT_MOST = 100;
const TAGS_AT_MOST = 100;

/** In the order of PostgreSQL, by which the shortest names come first. The same object if there are few. */
export const metadataForCallbacks = (metadata: Record<string, unknown>): Record<string, unknown> => {
  const entries = Object.entries(metadata);
  return entries.length <= METADATA_KEYS_AT_MOST
    ? metadata
    : Object.fromEntries(entries.slice(0, METADATA_KEYS_AT_MOST));
};

/** The first ones. */
export const tagsForCallbacks = (tags: string[]): string[] => tags.slice(0, TAGS_AT_MOST);
