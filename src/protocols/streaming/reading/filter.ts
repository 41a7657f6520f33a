import type { EventStream } from "../schemas.ts";
import { customNameOf, type ThreadEvent } from "./frames.ts";

export interface EventFilter {
  matches(event: ThreadEvent): boolean;
  /** Wants only beginnings, ends and interrupts. Both SDKs have such a connection. */
  readonly isWatcher: boolean;
}

const CHANNELS_OF_WATCHERS: ReadonlySet<string> = new Set(["lifecycle", "input"]);

/** Without the part that LangGraph adds for one execution. */
const nameOf = (segment: string): string => {
  const end = segment.indexOf(":");
  return end === -1 ? segment : segment.slice(0, end);
};

/** As in both SDKs: a segment without `:` matches all executions of that name. */
const isPrefix = (prefix: readonly string[], namespace: readonly string[]): boolean =>
  prefix.length <= namespace.length &&
  prefix.every((segment, index) => {
    const other = namespace[index] ?? "";
    return other === segment || (!segment.includes(":") && nameOf(other) === segment);
  });

const channelOf = (method: string): string => (method.startsWith("input.") ? "input" : method);

const PYTHON = /^langgraph-sdk-py\//;

/**
 * On a connection with these channels, Python's SDK takes the `completed` of any graph for its run's end, although the
 * graph may go on after a subgraph.
 */
const wantsRootLifecycleOnly = ({ channels, namespaces = [] }: EventStream, userAgent: string): boolean =>
  PYTHON.test(userAgent) &&
  namespaces.length === 0 &&
  CHANNELS_OF_WATCHERS.size === new Set(channels).size &&
  channels.every((channel) => CHANNELS_OF_WATCHERS.has(channel));

/** Unknown channels match nothing: clients can be newer than the server. */
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
