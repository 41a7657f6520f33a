import type { ShownMessage, ToolCall } from "./messages.ts";
import type { Subgraph } from "./subgraphs.ts";

/** The branches at a message. */
export interface Alternatives {
  /** The index of the shown branch. */
  position: number;
  count: number;
}

/** The same functions for all messages, so a change of one message does not render the others. */
export interface MessageActions {
  edit(message: ShownMessage, text: string): Promise<void>;
  regenerate(message: ShownMessage): Promise<void>;
  /** @param step 1: next branch, -1: previous branch */
  showAlternative(message: ShownMessage, step: 1 | -1): void;
  /** The subgraphs that answered a tool call. */
  subgraphsOfCall(call: ToolCall, result: ShownMessage | undefined): Promise<Subgraph[]>;
  /** The subgraphs that produced a message. */
  subgraphsOfMessage(message: ShownMessage): Promise<Subgraph[]>;
}
