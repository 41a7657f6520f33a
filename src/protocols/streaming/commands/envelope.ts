import type { Caller } from "../../../access/caller.ts";
import { isPassing } from "../../../platform/database/passing-faults.ts";
import {
  CallerGoneError,
  HandlerRefusal,
  ThreadloomError,
  type Missing,
} from "../../../platform/domain/errors.ts";
import { refusalOf as refusalOverHttp } from "../../../http/errors.ts";
import type { ReadBudget } from "../../../platform/lib/large-answers.ts";
import type { CommandAnswer, CommandEnvelope, ErrorCode } from "../schemas.ts";

export interface CommandSender {
  caller: Caller;
  threadId: string;
  /** Headers for the configuration of runs. */
  headers: Readonly<Record<string, string>> | undefined;
  budget: ReadBudget;
  /** Receives faults of the server, whose details the answer hides. */
  onFault: (error: unknown) => void;
}

const CREATING_RUNS = new Set(["run.start", "input.respond", "state.fork"]);
export const createsRun = ({ method }: CommandEnvelope): boolean => CREATING_RUNS.has(method);

/** Over HTTP, the answer has status 200. */
export class CommandError extends Error {
  constructor(
    readonly code: ErrorCode,
    message: string,
  ) {
    super(message);
    this.name = "CommandError";
  }
}

const MISSING: Record<Missing, ErrorCode> = {
  assistant: "invalid_argument",
  graph: "invalid_argument",
  thread: "no_such_run",
  run: "no_such_run",
  checkpoint: "no_such_checkpoint",
};

const codeOf = ({ kind, missing }: ThreadloomError): ErrorCode => {
  switch (kind) {
    case "not_found":
      return missing === undefined ? "invalid_argument" : MISSING[missing];
    case "unauthenticated":
    case "forbidden":
      return "permission_denied";
    case "too_many":
    case "unavailable":
      return "unknown_error";
    default:
      return "invalid_argument";
  }
};

/** Errors with an HTTP status, so that clients can repeat the request or authenticate. */
export const isForHttp = (error: unknown): boolean =>
  error instanceof CallerGoneError ||
  error instanceof HandlerRefusal ||
  isPassing(error) ||
  (error instanceof ThreadloomError &&
    (["unauthenticated", "forbidden", "unavailable", "too_large", "too_many"].includes(error.kind) ||
      error.missing === "assistant" ||
      error.missing === "graph"));

export const refusalOf = (id: number, error: unknown, onFault: (error: unknown) => void): CommandAnswer => {
  if (error instanceof CommandError) return { type: "error", id, error: error.code, message: error.message };
  if (error instanceof ThreadloomError) {
    return { type: "error", id, error: codeOf(error), message: error.message };
  }
  if (error instanceof HandlerRefusal) {
    return { type: "error", id, error: "permission_denied", message: error.message };
  }
  // The database module logs its own outage, and an unstorable value is the caller's fault.
  const refusal = refusalOverHttp(error);
  if (refusal !== undefined) {
    const code = refusal.status === 503 ? "unknown_error" : "invalid_argument";
    return { type: "error", id, error: code, message: refusal.detail };
  }
  onFault(error);
  const message = "The server could not do this; its log says why.";
  return { type: "error", id, error: "unknown_error", message };
};
