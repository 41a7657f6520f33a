import type { RunnableGraph } from "../../../graphs/runnable-graph.ts";
import { ownField } from "../../../platform/lib/names.ts";

/** The channel of pending `Send`s, in every graph. */
export const TASKS_CHANNEL = "__pregel_tasks";

/** What this room uses of LangGraph's channels. */
export interface Channel {
  readonly lg_is_channel: true;
  readonly lc_graph_name: string;
  fromCheckpoint(value: unknown): Channel;
  get(): unknown;
  isAvailable(): boolean;
}

/**
 * Channels that keep a value as it was given and hand it back as it is: a state can be read with the value's
 * JSON text in its place, without reviving messages only to write them as JSON again.
 */
const OPAQUE_CHANNELS = new Set([
  "LastValue",
  "BinaryOperatorAggregate",
  "EphemeralValue",
  "AnyValue",
  "UntrackedValue",
]);
/** Channels whose stored value has a form of its own; they drive the graph and are no part of its values. */
const CONTROL_CHANNELS = new Set([
  "NamedBarrierValue",
  "NamedBarrierValueAfterFinish",
  "LastValueAfterFinish",
]);

/** What of a graph decides how its checkpoints read. */
export interface GraphPlan {
  /** One channel whose value is the state itself, or undefined where the state is an object of channels. */
  readonly onlyChannel: string | undefined;
  /** The channels that make up the values, in the graph's order. */
  readonly valueChannels: readonly { name: string; jsonName: string; channel: Channel }[];
  readonly triggersOf: readonly (readonly [node: string, triggers: readonly string[]])[];
  /** Channels whose text must be parsed before LangGraph can read it. */
  readonly controlChannels: ReadonlySet<string>;
}

const isChannel = (value: unknown): value is Channel =>
  typeof value === "object" && value !== null && "lg_is_channel" in value && value.lg_is_channel === true;

/**
 * The plan of a graph, or undefined for one that has other channels than these (delta channels, topics, a
 * user's own): LangGraph itself must read its states then.
 */
export const planOf = (graph: RunnableGraph): GraphPlan | undefined => {
  const controlChannels = new Set<string>([TASKS_CHANNEL]);
  for (const [name, channel] of Object.entries(graph.channels)) {
    // Managed values (`isLastStep`) stand among the channels, but no checkpoint knows them.
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
