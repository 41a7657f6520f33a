import { PROTOCOL_EVENT_PREFIX } from "../wires.ts";

/** Methods of `@langchain/protocol` whose events a run tells. Of the root's lifecycle and of `input.requested` readers make them. */
export type ProtocolMethod =
  | "values"
  | "updates"
  | "messages"
  | "tools"
  | "lifecycle"
  | "custom"
  | "tasks"
  | "checkpoints"
  | "input.answered";

/** `params` of an event's frame, as an event of a run holds them in its data. */
export interface ProtocolParams {
  /** The path of the graph that tells it: [] is the root. */
  namespace: readonly string[];
  /** Milliseconds since 1970. */
  timestamp: number;
  /** The node of that graph, where the event is one of a node. */
  node?: string;
  data: unknown;
}

/** The method in the name of an event, which is one of the protocol wire. */
export const methodOf = (event: string): ProtocolMethod =>
  event.slice(PROTOCOL_EVENT_PREFIX.length) as ProtocolMethod;

/** Tells an event; `data` is called only if somebody wants it. */
export type PublishProtocolEvent = (
  method: ProtocolMethod,
  namespace: readonly string[],
  data: () => unknown,
  node?: string,
) => void;
