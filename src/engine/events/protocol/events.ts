/** Readers add the root's lifecycle and `input.requested`. */
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

/** `params` of an event's frame. */
export interface ProtocolParams {
  /** The path of the graph; [] is the root. */
  namespace: readonly string[];
  /** Milliseconds since 1970. */
  timestamp: number;
  node?: string;
  data: unknown;
}

/** `data` is called only if the event has a reader. */
export type PublishProtocolEvent = (
  method: ProtocolMethod,
  namespace: readonly string[],
  data: () => unknown,
  node?: string,
) => void;
