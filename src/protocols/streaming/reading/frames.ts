import type { SentEvent } from "../../../engine/events/transports/event-sink.ts";

/** An event of a thread, as event streaming tells it; see `@langchain/protocol`. */
export interface ThreadEvent {
  /** Its place among all that the thread ever tells. */
  seq: number;
  /** Unique in the thread, and the same on every connection: clients know by it what they have seen. */
  eventId: string;
  method: string;
  namespace: readonly string[];
  /** JSON text of `params`. */
  params: string;
}

/** The event as a client gets it; its data are the frame's JSON. */
export const toFrame = ({ seq, eventId, method, params }: ThreadEvent): SentEvent => ({
  seq: eventId,
  event: method,
  before: `{"type":"event","event_id":${JSON.stringify(eventId)},"seq":${seq},"method":${JSON.stringify(method)},"params":`,
  data: params,
  after: "}",
});

const NAMESPACE = '{"namespace":';

/** The end of the list that stands at `start` in a JSON text; a bracket within a text is none. */
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

/** -1 if `params` begin with none. */
const endOfNamespace = (params: string): number =>
  params.startsWith(`${NAMESPACE}[`) ? endOfList(params, NAMESPACE.length) : -1;

/**
 * The namespace in `params`, which begin with it (engine/events/protocol/events.ts). The rest may be megabytes, and is not parsed.
 */
export const namespaceOf = (params: string): readonly string[] => {
  if (params.startsWith(`${NAMESPACE}[]`)) return [];
  const end = endOfNamespace(params);
  return end === -1 ? [] : (JSON.parse(params.slice(NAMESPACE.length, end)) as string[]);
};

/** Room for the longest name that a channel can have, each of its characters written as an escape of six, and for what stands before. */
const HEAD_CHARACTERS = 20_000;
const NAMED = /^,"timestamp":\d+(?:,"node":"(?:[^"\\]|\\.)*")?,"data":\{"name":("(?:[^"\\]|\\.)*")/;

/**
 * The name that a `custom` event was written under, which begins its data (engine/events/protocol/states.ts). Each subscription asks for
 * it, so the rest is not parsed: 200 of them took half a second for an event of 2 MB.
 */
export const customNameOf = (params: string): string | undefined => {
  const end = endOfNamespace(params);
  const [, name] = end === -1 ? [] : (NAMED.exec(params.slice(end, end + HEAD_CHARACTERS)) ?? []);
  return name === undefined ? undefined : (JSON.parse(name) as string);
};
