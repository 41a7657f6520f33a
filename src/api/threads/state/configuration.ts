import type { Visibility } from "../../../access/visibility.ts";
import type { Database } from "../../../platform/database/database.ts";
import type { Cipher } from "../../../platform/encryption/cipher.ts";
import { authConfigurable, toGraphConfiguration } from "../../../graphs/configuration.ts";
import type { GraphConfiguration } from "../../../graphs/runnable-graph.ts";
import { ASSISTANT_JSON, decryptRow, THREAD_JSON } from "../../../platform/encryption/columns.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";

/**
 * The configuration for building a thread's graph outside a run: the runs' configuration, kept with the thread, over
 * the last assistant's.
 */
export interface ThreadConfigurations {
  /** Deleted threads are missing. */
  of(
    visibility: Visibility<"threads">,
    threadIds: readonly string[],
  ): Promise<ReadonlyMap<string, GraphConfiguration>>;
}

interface ConfigurationRow {
  thread_id: string;
  metadata: JsonObject;
  config: JsonObject;
  assistant_id: string | null;
  assistant_metadata: JsonObject | null;
  assistant_config: JsonObject | null;
  assistant_context: JsonObject | null;
}

/**
 * Raw for the cast: users can write any text into `metadata.assistant_id`. Indexes: threads_pkey, assistants_pkey.
 * Readers need no right to the assistant, because the thread's runs took this configuration from it.
 */
const configurations = (visible: string): string => `
  select t.thread_id, t.metadata, t.config, a.assistant_id, a.metadata as assistant_metadata, a.config as assistant_config,
         a.context as assistant_context
    from threadloom.threads t
    left join threadloom.assistants a on a.assistant_id = case
      when t.metadata ->> 'assistant_id' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
      then (t.metadata ->> 'assistant_id')::uuid end
   where t.thread_id = any($1::uuid[]) and ${visible}`;

const textIn = (metadata: JsonObject, key: "graph_id" | "assistant_id"): Record<string, string> => {
  const text = metadata[key];
  return typeof text === "string" ? { [key]: text } : {};
};

/** Encryption is bound to the assistant's column names. */
const opened = (cipher: Cipher | undefined, row: ConfigurationRow): ConfigurationRow => {
  if (cipher === undefined) return row;
  const {
    assistant_id,
    assistant_metadata: metadata,
    assistant_config: config,
    assistant_context: context,
  } = row;
  const thread = decryptRow(cipher, THREAD_JSON, row);
  if (assistant_id === null) return thread;
  const assistant = decryptRow(cipher, ASSISTANT_JSON, { assistant_id, metadata, config, context });
  return {
    ...thread,
    assistant_metadata: assistant.metadata,
    assistant_config: assistant.config,
    assistant_context: assistant.context,
  };
};

/** A factory receives the reader as it receives a run's user. */
const toConfiguration = (row: ConfigurationRow, user: JsonObject | undefined): GraphConfiguration => {
  const { thread_id, metadata, config, assistant_config, assistant_context, assistant_metadata } = row;
  const ids = { thread_id, ...textIn(metadata, "graph_id"), ...textIn(metadata, "assistant_id") };
  const given = toGraphConfiguration({
    configurable: {
      ...(assistant_config?.configurable as JsonObject | undefined),
      ...(config.configurable as JsonObject | undefined),
    },
    context: { ...assistant_context, ...(config.context as JsonObject | undefined) },
    ids,
  });
  const configurable =
    user === undefined ? given.configurable : { ...given.configurable, ...authConfigurable(user) };
  return { ...given, configurable, metadata: { ...assistant_metadata, ...metadata } };
};

export const createThreadConfigurations = (database: Database): ThreadConfigurations => ({
  async of(visibility, threadIds) {
    if (threadIds.length === 0) return new Map();
    const values: unknown[] = [threadIds];
    const text = configurations(visibility.condition("t.metadata", values));
    const rows = await database.query<ConfigurationRow>(text, values);
    return new Map(
      rows.map((row) => [row.thread_id, toConfiguration(opened(database.cipher, row), visibility.user)]),
    );
  },
});
