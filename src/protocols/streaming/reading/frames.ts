import type { SentEvent } from "../../../engine/events/transports/event-sink.ts";

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
 * The name comes first (engine/events/protocol/states.ts). Parsing an event of 2 MB for 200 subscriptions took half a
 * second.
 */
export const customNameOf = (params: string): string | undefined => {
  const end = endOfNamespace(params);
  const [, name] = end === -1 ? [] : (NAMED.exec(params.slice(end, end + HEAD_CHARACTERS)) ?? []);
  return name === undefined ? undefined : (JSON.parse(name) as string);
};
