import type { Visibility } from "../../../access/visibility.ts";
import type { Graphs } from "../../../graphs/graphs.ts";
import type { GraphConfiguration, RunnableGraph } from "../../../graphs/runnable-graph.ts";
import { ownField } from "../../../platform/lib/names.ts";
import type { ValueClasses } from "../../../state/values/classes.ts";
import type { ThreadConfigurations } from "./configuration.ts";

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

export type KnownConfigurations = ReadonlyMap<string, GraphConfiguration>;

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

export const createThreadGraphs = (graphs: Graphs, configurations: ThreadConfigurations) => {
  /** Only factories need a query. All threads were found with one visibility. */
  const configurationsOf = async (threads: readonly ThreadOfGraph[]): Promise<KnownConfigurations> => {
    const ofFactories = threads.filter(
      ({ graphId }) => graphId !== null && graphs.has(graphId) && graphs.isFactory(graphId),
    );
    const [first] = ofFactories;
    if (first === undefined) return new Map();
    return await configurations.of(
      first.visibility,
      ofFactories.map(({ threadId }) => threadId),
    );
  };

  /**
   * Undefined for a thread that never ran, an unknown graph and a failing factory: one thread must not fail a search.
   */
  const graphOf = async (
    thread: ThreadOfGraph,
    known?: KnownConfigurations,
  ): Promise<GraphOfThread | undefined> => {
    const { threadId, graphId } = thread;
    if (graphId === null || !graphs.has(graphId)) return undefined;
    const configuration = (known ?? (await configurationsOf([thread]))).get(threadId);
    const graph = await graphs.resolve(graphId, configuration).catch(() => undefined);
    return graph && { graph, classes: graphs.classesOf(graphId) };
  };

  return {
    configurationsOf,
    graphOf,

    /** Whether the keys of all values are channels of the same name. */
    async areKeysChannels(threads: readonly ThreadOfGraph[], known: KnownConfigurations): Promise<boolean> {
      for (const thread of threads) {
        const found = await graphOf(thread, known);
        if (found !== undefined && storedChannelsOf(found.graph)?.isOne !== false) return false;
      }
      return true;
    },
  };
};
