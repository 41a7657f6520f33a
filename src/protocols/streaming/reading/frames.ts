import type { SentEvent } from "../../../engine/events/transports/event-sink.ts";
import type { EventStream } from "../schemas.ts";

/** See `@langchain/protocol`. */
export interface ThreadEvent {
  /** Its position in the thread. */
  seq: number;
  /** The same on every connection: clients detect duplicates by it. */
  eventId: string;
  method: string;
  namespace: readonly string[];
  /** JSON text. */
  params: string;
}

export const toFrame = ({ seq, eventId, method, params }: ThreadEvent): SentEvent => ({
  seq: eventId,
  event: method,
  before: `{"type":"event","event_id":${JSON.stringify(eventId)},"seq":${seq},"method":${JSON.stringify(method)},"params":`,
  data: params,
  after: "}",
});

const NAMESPACE = '{"namespace":';

/** Ignores brackets within strings. */
const endOfList = (json: string, start: number): number => {
  let isText = false;
  for (let index = start; index < json.length; index += 1) {
    const character = json[index];
    if (isText && character === "\\") index += 1;
    else if (character === '"') isText = !isText;
    else if (character === "]" && !isText) return index + 1;
  }
  return -1;
};

const endOfNamespace = (params: string): number =>
  params.startsWith(`${NAMESPACE}[`) ? endOfList(params, NAMESPACE.length) : -1;

/** The namespace comes first (engine/events/protocol/events.ts). The rest may be megabytes and is not parsed. */
export const namespaceOf = (params: string): readonly string[] => {
  if (params.startsWith(`${NAMESPACE}[]`)) return [];
  const end = endOfNamespace(params);
  return end === -1 ? [] : (JSON.parse(params.slice(NAMESPACE.length, end)) as string[]);
};

/** Room for the longest channel name, with six characters per escape, and the fields before it. */
const HEAD_CHARACTERS = 20_000;
const NAMED = /^,"timestamp":\d+(?:,"node":"(?:[^"\\]|\\.)*")?,"data":\{"name":("(?:[^"\\]|\\.)*")/;

/**
 * The name comes first (engine/events/protocol/events.ts). Parsing an event of 2 MB for 200 subscriptions took half a
 * second.
 */
const customNameOf = (params: string): string | undefined => {
  const end = endOfNamespace(params);
  const [, name] = end === -1 ? [] : (NAMED.exec(params.slice(end, end + HEAD_CHARACTERS)) ?? []);
  return name === undefined ? undefined : (JSON.parse(name) as string);
};

export type EventFilter = ReturnType<typeof createFilter>;

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
export const createFilter = (asked: EventStream, userAgent = "") => {
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
    /** Wants only beginnings, ends and interrupts. Both SDKs have such a connection. */
    isWatcher: channels.every((channel) => CHANNELS_OF_WATCHERS.has(channel)),
    matches({ method, namespace, params }: ThreadEvent): boolean {
      if (!isWantedNamespace(namespace)) return false;
      if (rootLifecycleOnly && method === "lifecycle" && namespace.length > 0) return false;
      if (wanted.has(channelOf(method))) return true;
      if (method !== "custom" || names.size === 0) return false;
      const name = customNameOf(params);
      return name !== undefined && names.has(name);
    },
  };
};
