import { TaskState } from "@a2a-js/sdk";
import { RequestMalformedError } from "@a2a-js/sdk/errors";
import type { CreatedRun } from "../../api/runs/joining/results.ts";
import type { Caller } from "../../access/caller.ts";
import type { RunSelector } from "../../engine/queue/attempts.ts";

import { isUuid } from "../../platform/lib/ids.ts";
import type { Task } from "../calls/tasks.ts";
import { STATES } from "./tasks.ts";

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
  /** The request waits for this run, or streams it. */
  onAccepted(run: RunSelector): void;
}

/** A task whose run is to be awaited. `created`: undefined if the message was known already. */
export interface Accepted {
  task: Task;
  created: CreatedRun | undefined;
}

/** The events of a stream can't be read to the end. The client must be cut off, so that it subscribes again. */
export class StreamLostError extends Error {}

/** The protocol's dialects. A request without a version speaks the older one. */
export type Version = "0.3" | "1.0";

/** No task of this server gets these states. */
export const NEVER: ReadonlySet<TaskState> = new Set([
  TaskState.TASK_STATE_REJECTED,
  TaskState.TASK_STATE_AUTH_REQUIRED,
]);

/** A context is a thread. Undefined for none. */
export const contextIdOf = (contextId: unknown): string | undefined => {
  if (contextId === "") return undefined;
  // The package does not check messages of 0.3.
  if (typeof contextId === "string" && isUuid(contextId)) return contextId.toLowerCase();
  throw new RequestMalformedError("'contextId' must be a UUID: it is the id of a thread.");
};

export const lengthOf = (
  name: string,
  value: number | undefined,
  least: number,
  most: number,
): number | undefined => {
  if (value === undefined || (Number.isInteger(value) && value >= least && value <= most)) return value;
  throw new RequestMalformedError(`'${name}' must be an integer from ${least} to ${most}.`);
};
export const historyLengthOf = (value: number | undefined): number | undefined =>
  lengthOf("historyLength", value, 0, 2_147_483_647);

/** Undefined for any state. */
export const stateOf = (asked: TaskState): Task["state"] | undefined => {
  if (asked === TaskState.TASK_STATE_UNSPECIFIED) return undefined;
  const [state] = Object.entries(STATES).find(([, value]) => value === asked) ?? [];
  if (state === undefined) throw new RequestMalformedError("'status' is no state of a task.");
  return state as Task["state"];
};

/** Undefined for no time. */
export const timeOf = (text: string | undefined): Date | undefined => {
  if (text === undefined || text === "") return undefined;
  const time = new Date(text);
  if (!Number.isNaN(time.getTime())) return time;
  throw new RequestMalformedError("'statusTimestampAfter' must be an ISO 8601 time.");
};
