import type { EventStream } from "../schemas.ts";
import { customNameOf, type ThreadEvent } from "./frames.ts";

/** Which events of a thread a connection, or a subscription of a socket, has asked for. */
export interface EventFilter {
  matches(event: ThreadEvent): boolean;
  /**
   * Asks for no more than how runs begin and end, and what they ask for. Both SDKs have such a connection beside the one
   * that their data come by.
   */
  readonly isWatcher: boolean;
}

const CHANNELS_OF_WATCHERS: ReadonlySet<string> = new Set(["lifecycle", "input"]);

/** The end of a segment's name; behind it stands what LangGraph made up for this one execution. */
const nameOf = (segment: string): string => {
  const end = segment.indexOf(":");
  return end === -1 ? segment : segment.slice(0, end);
};

/** As both SDKs compare: a segment without `:` stands for all executions of that name. */
const isPrefix = (prefix: readonly string[], namespace: readonly string[]): boolean =>
  prefix.length <= namespace.length &&
  prefix.every((segment, index) => {
    const other = namespace[index] ?? "";
    return other === segment || (!segment.includes(":") && nameOf(other) === segment);
  });

const channelOf = (method: string): string => (method.startsWith("input.") ? "input" : method);

/** The official client for Python, in the header `User-Agent`. */
const PYTHON = /^langgraph-sdk-py\//;

/**
 * Python's SDK takes the `completed` of any graph for the end of its run on the connection that asks for exactly these channels, so a
 * graph within the root would end it with half the state.
 */
const wantsRootLifecycleOnly = ({ channels, namespaces = [] }: EventStream, userAgent: string): boolean =>
  PYTHON.test(userAgent) &&
  namespaces.length === 0 &&
  CHANNELS_OF_WATCHERS.size === new Set(channels).size &&
  channels.every((channel) => CHANNELS_OF_WATCHERS.has(channel));

/** Unknown channels match nothing: clients run ahead of servers. `userAgent`: of the request, where there is one. */
export const createFilter = (asked: EventStream, userAgent = ""): EventFilter => {
  const { channels, namespaces = [], depth = Infinity } = asked;
  const rootLifecycleOnly = wantsRootLifecycleOnly(asked, userAgent);
  const wanted = new Set(channels);
  const names = new Set(
    channels.filter((channel) => channel.startsWith("custom:")).map((channel) => channel.slice(7)),
  );
  const isWantedNamespace = (namespace: readonly string[]): boolean =>
    namespaces.length === 0 ||
    namespaces.some((prefix) => isPrefix(prefix, namespace) && namespace.length - prefix.length <= depth);

  return {
    isWatcher: channels.every((channel) => CHANNELS_OF_WATCHERS.has(channel)),
    matches({ method, namespace, params }) {
      if (!isWantedNamespace(namespace)) return false;
      if (rootLifecycleOnly && method === "lifecycle" && namespace.length > 0) return false;
      if (wanted.has(channelOf(method))) return true;
      if (method !== "custom" || names.size === 0) return false;
      const name = customNameOf(params);
      return name !== undefined && names.has(name);
    },
  };
};
