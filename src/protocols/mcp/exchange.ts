import type { ClientCapabilities } from "@modelcontextprotocol/server";
import type { HeldAccess, Reauthorize } from "../../access/reauthorization.ts";
import type { Caller } from "../../access/caller.ts";
import type { ReadBudget } from "../../platform/lib/large-answers.ts";

/** A request over HTTP, and its answer. */
export interface Exchange {
  caller: Caller;
  /** For the graph's configuration. */
  headers: Readonly<Record<string, string>> | undefined;
  budget: ReadBudget;
  holdAccess(ask: Reauthorize): HeldAccess;
  /** Aborts when the answer's connection is closed, also by this server. */
  signal: AbortSignal;
  /** Calls the listener if the client closes the connection before it has the answer. */
  onLeave(listener: () => void): void;
  /** Whether the client has taken what was sent. */
  isTaken(): boolean;
  /** The run is stored: the message is no longer needed, and errors can no longer be a status of HTTP. */
  begin(): void;
  /** Ends the request with the HTTP status of this error. False: too late, or the message is one of a batch. */
  refuse(error: unknown): boolean;
  onFault(error: unknown, what: string): void;
}

/** What the package reads of a request. A web `Request` costs as much as all the rest of the exchange. */
export type MessageRequest = Pick<Request, "method" | "signal"> & { headers: Pick<Headers, "get"> };

export const TASKS = "io.modelcontextprotocol/tasks";

/** What the client of a call can do. */
export interface Client {
  /** Closing the answer cancels the call (revision 2026-07-28). */
  cancelsByLeaving: boolean;
  capabilities: ClientCapabilities;
}

export const usesTasks = ({ capabilities }: Client): boolean =>
  capabilities.extensions !== undefined && Object.hasOwn(capabilities.extensions, TASKS);
