import { PROTOCOL_EVENT_PREFIX } from "../wires.ts";

/**
 * Methods of `@langchain/protocol` that a run publishes. Readers add the root's lifecycle and
 * `input.requested`.
 */
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

/** `params` of an event's frame, stored as the data of a run's event. */
export interface ProtocolParams {
  /** The path of the graph; [] is the root. */
  namespace: readonly string[];
  /** Milliseconds since 1970. */
  timestamp: number;
  /** For events of a node. */
  node?: string;
  data: unknown;
}

/** The method of a protocol event. */
export const methodOf = (event: string): ProtocolMethod =>
  event.slice(PROTOCOL_EVENT_PREFIX.length) as ProtocolMethod;

/** `data` is called only if the event has a reader. */
export type PublishProtocolEvent = (
  method: ProtocolMethod,
  namespace: readonly string[],
  data: () => unknown,
  node?: string,
) => void;
