import type { Caller } from "../../access/caller.ts";
import type { RunSelector } from "../../engine/queue/attempts.ts";
import type { ReadBudget } from "../../platform/lib/large-answers.ts";

/** One request to an assistant as an agent. */
export interface AgentRequest {
  caller: Caller;
  /** An assistant's or a graph's id. */
  assistantId: string;
  /** Of this server, for a card. Throws `malformed` for a request without a host. */
  address(): string;
  /** For the graph's configuration. */
  headers: Readonly<Record<string, string>> | undefined;
  /** Aborts when the client leaves or loses access. */
  signal: AbortSignal;
  budget: ReadBudget;
  /** The request waits for this run, or streams it. */
  onAccepted(run: RunSelector): void;
}

/** The events of a stream can't be read to the end. The client must be cut off, so that it subscribes again. */
export class StreamLostError extends Error {}

/** The protocol's dialects. A request without a version speaks the older one. */
export type Version = "0.3" | "1.0";
