import type { RunnableGraph } from "../../../graphs/runnable-graph.ts";
import { ownField } from "../../../platform/lib/names.ts";

/** LangGraph's channel of pending `Send`s. */
export const TASKS_CHANNEL = "__pregel_tasks";

export interface Channel {
  readonly lg_is_channel: true;
  readonly lc_graph_name: string;
  fromCheckpoint(value: unknown): Channel;
  get(): unknown;
  isAvailable(): boolean;
}

/**
 * These channels return a value unchanged, so JSON text can take the value's place and messages need not be revived.
 */
const OPAQUE_CHANNELS = new Set([
  "LastValue",
  "BinaryOperatorAggregate",
  "EphemeralValue",
  "AnyValue",
  "UntrackedValue",
]);
/** These channels drive the graph, hold no values and have their own stored form. */
const CONTROL_CHANNELS = new Set([
  "NamedBarrierValue",
  "NamedBarrierValueAfterFinish",
  "LastValueAfterFinish",
]);

export interface GraphPlan {
  /** The channel whose value is the whole state, if there is one. */
  readonly onlyChannel: string | undefined;
  readonly valueChannels: readonly { name: string; jsonName: string; channel: Channel }[];
  readonly triggersOf: readonly (readonly [node: string, triggers: readonly string[]])[];
  /** Channels whose text must be parsed before LangGraph can read it. */
  readonly controlChannels: ReadonlySet<string>;
}

const isChannel = (value: unknown): value is Channel =>
  typeof value === "object" && value !== null && "lg_is_channel" in value && value.lg_is_channel === true;

/** Undefined for a graph with other channels (delta channels, topics, a user's own): LangGraph must read its states. */
export const planOf = (graph: RunnableGraph): GraphPlan | undefined => {
  const controlChannels = new Set<string>([TASKS_CHANNEL]);
  for (const [name, channel] of Object.entries(graph.channels)) {
    // Managed values (`isLastStep`) are not in checkpoints.
    if (!isChannel(channel) || name === TASKS_CHANNEL) continue;
    if (CONTROL_CHANNELS.has(channel.lc_graph_name)) controlChannels.add(name);
    else if (!OPAQUE_CHANNELS.has(channel.lc_graph_name)) return undefined;
  }
  const selected = graph.streamChannelsAsIs;
  const valueChannels: { name: string; jsonName: string; channel: Channel }[] = [];
  for (const name of typeof selected === "string" ? [selected] : selected) {
    const channel = ownField(graph.channels, name);
    if (controlChannels.has(name)) return undefined;
    if (isChannel(channel)) valueChannels.push({ name, jsonName: JSON.stringify(name), channel });
  }
  const triggersOf = Object.entries(graph.nodes).map(
    ([name, node]) => [name, (node as { triggers: string[] }).triggers] as const,
  );
  return {
    onlyChannel: typeof selected === "string" ? selected : undefined,
    valueChannels,
    triggersOf,
    controlChannels,
  };
};

/** By name: the project may have another copy of LangGraph. */
export const deltaChannelsOf = ({ channels }: RunnableGraph): string[] =>
  Object.entries(channels).flatMap(([name, channel]) =>
    isChannel(channel) && channel.lc_graph_name === "DeltaChannel" ? [name] : [],
  );
