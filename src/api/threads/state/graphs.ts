import type { Visibility } from "../../../access/visibility.ts";
import { authConfigurable, toGraphConfiguration } from "../../../graphs/configuration.ts";
import type { Graphs } from "../../../graphs/graphs.ts";
import type { GraphConfiguration, RunnableGraph } from "../../../graphs/runnable-graph.ts";
import type { Database } from "../../../platform/database/database.ts";
import { isPassing } from "../../../platform/database/passing-faults.ts";
import { statement } from "../../../platform/database/statement.ts";
import {
  EncryptionError,
  ProjectCodeError,
  sqlState,
  StateStorageError,
  ThreadloomError,
} from "../../../platform/domain/errors.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { ownField } from "../../../platform/lib/names.ts";
import type { ValueClasses } from "../../../state/values/classes.ts";

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

/**
 * The configurations with which the graphs of threads are built outside a run, by thread. The thread's part overrides the
 * last assistant's. Deleted threads are missing.
 */
export const configurationsOf = async (
  database: Database,
  visibility: Visibility<"threads">,
  threadIds: readonly string[],
): Promise<ReadonlyMap<string, GraphConfiguration>> => {
  if (threadIds.length === 0) return new Map();
  const visible = visibility.on("t.metadata");
  const rows = await CONFIGURATIONS.query<ConfigurationRow>(database, { threadIds, visible });
  return new Map(rows.map((row) => [row.thread_id, toConfiguration(opened(database, row), visibility.user)]));
};

/** `graphId` is null before the first run. */
export interface ThreadOfGraph {
  /** The visibility that found the thread. */
  visibility: Visibility<"threads">;
  threadId: string;
  graphId: string | null;
}

export interface GraphOfThread {
  graph: RunnableGraph;
  classes: ValueClasses;
}

interface Channel {
  readonly lg_is_channel: true;
  readonly lc_graph_name: string;
  fromCheckpoint(value: unknown): Channel;
  get(): unknown;
  isAvailable(): boolean;
}

/** The values of these channels are the stored ones. */
const STORED_CHANNELS = new Set([
  "LastValue",
  "BinaryOperatorAggregate",
  "EphemeralValue",
  "AnyValue",
  "UntrackedValue",
]);

const isChannel = (value: unknown): value is Channel =>
  typeof value === "object" && value !== null && "lg_is_channel" in value && value.lg_is_channel === true;

/** The channels of a state whose values need no graph. */
export interface StoredChannels {
  /** The value of the channel is the whole state. */
  isOne: boolean;
  channels: ReadonlyMap<string, Channel>;
}

/** Undefined: LangGraph must put the values together (delta channels, topics, a user's own). */
export const storedChannelsOf = ({
  channels,
  streamChannelsAsIs: selected,
}: RunnableGraph): StoredChannels | undefined => {
  const found = new Map<string, Channel>();
  for (const name of typeof selected === "string" ? [selected] : selected) {
    const channel = ownField(channels, name);
    // Managed values (`isLastStep`) are not in checkpoints.
    if (!isChannel(channel)) continue;
    if (!STORED_CHANNELS.has(channel.lc_graph_name)) return undefined;
    found.set(name, channel);
  }
  return { isOne: typeof selected === "string", channels: found };
};

/** By name: the project may have another copy of LangGraph. */
export const deltaChannelsOf = ({ channels }: RunnableGraph): string[] =>
  Object.entries(channels).flatMap(([name, channel]) =>
    isChannel(channel) && channel.lc_graph_name === "DeltaChannel" ? [name] : [],
  );

type Configurations = ReadonlyMap<string, GraphConfiguration>;

export const createThreadGraphs = (database: Database, graphs: Graphs) => {
  /** Only factories need a query. All threads were found with one visibility. */
  const configurationsFor = async (threads: readonly ThreadOfGraph[]): Promise<Configurations> => {
    const ofFactories = threads.filter(
      ({ graphId }) => graphId !== null && graphs.has(graphId) && graphs.isFactory(graphId),
    );
    const [first] = ofFactories;
    if (first === undefined) return new Map();
    const threadIds = ofFactories.map(({ threadId }) => threadId);
    return await configurationsOf(database, first.visibility, threadIds);
  };

  /**
   * Undefined for a thread that never ran, an unknown graph and a failing factory: one thread must not fail a search.
   */
  const graphOf = async (
    thread: ThreadOfGraph,
    known?: Configurations,
  ): Promise<GraphOfThread | undefined> => {
    const { threadId, graphId } = thread;
    if (graphId === null || !graphs.has(graphId)) return undefined;
    const configuration = (known ?? (await configurationsFor([thread]))).get(threadId);
    const graph = await graphs.resolve(graphId, configuration).catch(() => undefined);
    return graph && { graph, classes: graphs.classesOf(graphId) };
  };

  return { configurationsFor, graphOf };
};

/** Errors whose messages may be logged. */
const isOurs = (error: unknown): boolean =>
  error instanceof ThreadloomError ||
  error instanceof StateStorageError ||
  error instanceof EncryptionError ||
  isPassing(error) ||
  (sqlState(error) !== undefined && "severity" in (error as Error));

/** Errors of the graph become `ProjectCodeError`, so that the log omits their messages. */
export const byGraphCode = async <Result>(what: string, work: () => Promise<Result>): Promise<Result> => {
  try {
    return await work();
  } catch (error) {
    throw isOurs(error) ? error : new ProjectCodeError(what, { cause: error });
  }
};
