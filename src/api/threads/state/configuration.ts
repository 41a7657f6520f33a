import type { Visibility } from "../../../access/visibility.ts";
import type { Database } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import { authConfigurable, toGraphConfiguration } from "../../../graphs/configuration.ts";
import type { GraphConfiguration } from "../../../graphs/runnable-graph.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";

/**
 * The configuration with which a thread's graph is built outside a run. The thread's part overrides the last
 * assistant's.
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
 * Raw SQL for the cast: users can write any text into `metadata.assistant_id`. Readers need no right to the assistant,
 * because the thread took this configuration from it. Indexes: threads_pkey, assistants_pkey.
 */
const CONFIGURATIONS = statement(
  { threadIds: "uuid[]", visible: "fragment" },
  (sql) => `
  select t.thread_id, t.metadata, t.config, a.assistant_id, a.metadata as assistant_metadata, a.config as assistant_config,
         a.context as assistant_context
    from threadloom.threads t
    left join threadloom.assistants a on a.assistant_id = case
      when t.metadata ->> 'assistant_id' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
      then (t.metadata ->> 'assistant_id')::uuid end
   where t.thread_id = any(${sql.threadIds}) and ${sql.visible}`,
);

const textIn = (metadata: JsonObject, key: "graph_id" | "assistant_id"): Record<string, string> => {
  const text = metadata[key];
  return typeof text === "string" ? { [key]: text } : {};
};

/** Encryption is bound to the assistant's column names. */
const opened = ({ encryption }: Database, row: ConfigurationRow): ConfigurationRow => {
  if (!encryption.isOn) return row;
  const { assistant_id, assistant_metadata, assistant_config, assistant_context } = row;
  const thread = encryption.decrypted("threads", row);
  if (assistant_id === null) return thread;
  const key = { assistant_id };
  return {
    ...thread,
    assistant_metadata: encryption.decryptedValue("assistants", "metadata", assistant_metadata, key),
    assistant_config: encryption.decryptedValue("assistants", "config", assistant_config, key),
    assistant_context: encryption.decryptedValue("assistants", "context", assistant_context, key),
  };
};

/** A factory receives the reader in place of a run's user. */
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
    const visible = visibility.on("t.metadata");
    const rows = await CONFIGURATIONS.query<ConfigurationRow>(database, { threadIds, visible });
    return new Map(
      rows.map((row) => [row.thread_id, toConfiguration(opened(database, row), visibility.user)]),
    );
  },
});
