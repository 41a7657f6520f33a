import { TaskState } from "@a2a-js/sdk";
import { RequestMalformedError } from "@a2a-js/sdk/errors";
import { isUuid } from "../../platform/lib/ids.ts";
import type { Task } from "../calls/tasks.ts";
import { STATES } from "./tasks.ts";

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
