import type { GraphConfiguration } from "./runnable-graph.ts";

/** Keys of `configurable` that only the server sets. */
const SERVER_OWNED =
  /^(thread_id|thread_ts|run_id|run_attempt|graph_id|assistant_id|checkpoint_ns|checkpoint_id|checkpoint_map|langgraph_auth_.*|__pregel_.*)$/;

export const withoutServerOwned = (configurable: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(configurable).filter(([key]) => !SERVER_OWNED.test(key)));

/** Only the server may describe the user. */
const AUTH_FIELD = /^langgraph_auth_/;

/** Returns the same object if there is nothing to remove. */
export const withoutAuthFields = <Fields extends Record<string, unknown>>(fields: Fields): Fields =>
  Object.keys(fields).some((key) => AUTH_FIELD.test(key))
    ? (Object.fromEntries(Object.entries(fields).filter(([key]) => !AUTH_FIELD.test(key))) as Fields)
    : fields;

export const withoutAuth = <Config extends Record<string, unknown>>(config: Config): Config => {
  const { configurable } = config;
  if (typeof configurable !== "object" || configurable === null) return config;
  const own = withoutAuthFields(configurable as Record<string, unknown>);
  return own === configurable ? config : { ...config, configurable: own };
};

export const isEmpty = (value: object): boolean => Object.keys(value).length === 0;

/** The hosted service's names for the user of a run. */
export const authConfigurable = (user: Readonly<Record<string, unknown>>): Record<string, unknown> => ({
  langgraph_auth_user: user,
  langgraph_auth_user_id: user.identity,
  langgraph_auth_permissions: user.permissions ?? [],
});

interface Given {
  /** `config.configurable` of the assistant, the thread and, in a run, the request. */
  configurable: Record<string, unknown>;
  /** Headers of the request. They win over its body, because a proxy sets them. */
  headers?: Readonly<Record<string, string>> | undefined;
  context: Record<string, unknown>;
  /** E.g. `thread_id`, `graph_id`. */
  ids: Record<string, string>;
}

/** Copies context into configurable and back: older graphs read configurable, newer graphs read context. */
export const toGraphConfiguration = ({
  configurable,
  headers,
  context,
  ids,
}: Given): Required<Pick<GraphConfiguration, "configurable" | "context">> => {
  const own = withoutServerOwned(configurable);
  return {
    context: isEmpty(context) ? own : withoutAuthFields(context),
    // The own fields come first, in the order of their author, and win.
    configurable: { ...own, ...withoutServerOwned(context), ...own, ...headers, ...ids },
  };
};

/**
 * LangChain copies metadata and tags one by one for each call of a model or tool. 1,100 keys blocked the event loop for
 * over a minute; 100 cost a few milliseconds.
 */
const METADATA_KEYS_AT_MOST = 100;
const TAGS_AT_MOST = 100;

/** Keeps the first keys in PostgreSQL's order (shortest first). Returns the same object if there are few. */
export const metadataForCallbacks = (metadata: Record<string, unknown>): Record<string, unknown> => {
  const entries = Object.entries(metadata);
  return entries.length <= METADATA_KEYS_AT_MOST
    ? metadata
    : Object.fromEntries(entries.slice(0, METADATA_KEYS_AT_MOST));
};

export const tagsForCallbacks = (tags: string[]): string[] => tags.slice(0, TAGS_AT_MOST);
