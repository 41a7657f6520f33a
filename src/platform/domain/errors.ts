import type { CausedByProject, WithoutContents } from "../lib/contents.ts";

/**
 * The error catalogue: every refusal of a request is declared here. Only `http/` maps a `kind` to a status code.
 * The caller gets the message as `{"detail": message}`. A message is one sentence that names the field or the id, and
 * contains no SQL, path or stack.
 */

export type ErrorKind =
  /** The body is not parseable. HTTP 400. */
  | "malformed"
  /** The request has no API key. HTTP 401. */
  | "unauthenticated"
  /** The API key is unknown or lacks the permission. HTTP 403. */
  | "forbidden"
  /** The resource does not exist, or the caller may not see it. HTTP 404. */
  | "not_found"
  /** The request contradicts the present state, e.g. a run is in progress. HTTP 409. */
  | "conflict"
  /** The body is too large for the route. HTTP 413. */
  | "too_large"
  /** A field is invalid; the message names it. HTTP 422. */
  | "invalid"
  /** The caller exceeds a limit; nothing was done. HTTP 429 with Retry-After. */
  | "too_many"
  /** The database is unreachable or memory is short; nothing was stored. HTTP 503 with Retry-After. */
  | "unavailable";

/** The missing resource, for protocols with error codes. */
export type Missing = "assistant" | "graph" | "thread" | "run" | "checkpoint";

/** An error whose message is for the caller. */
export class ThreadloomError extends Error {
  readonly missing: Missing | undefined;
  /** When to try again. Undefined: unknown, or never. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    readonly kind: ErrorKind,
    message: string,
    options?: { cause?: unknown; missing?: Missing; retryAfterSeconds?: number },
  ) {
    super(message, options);
    this.name = "ThreadloomError";
    this.missing = options?.missing;
    this.retryAfterSeconds = options?.retryAfterSeconds;
  }
}

const refusal = (kind: ErrorKind) => (message: string, cause?: unknown) =>
  new ThreadloomError(kind, message, cause === undefined ? undefined : { cause });

export const malformed = refusal("malformed");
export const unauthenticated = refusal("unauthenticated");
export const notAuthenticated = (): ThreadloomError =>
  unauthenticated("The request could not be authenticated.");
export const forbidden = refusal("forbidden");
export const keyNeeded = () =>
  unauthenticated("This server needs an API key: send it as X-Api-Key or Authorization: Bearer.");
/** Also for revoked and expired keys: the answer must not reveal that a key was valid once. */
export const unknownKey = () => forbidden("The API key is not known to this server.");
export const scopeMissing = (action: string, needed: string) =>
  forbidden(`This API key may not do that: '${action}' needs the scope '${needed}'.`);
export const invalid = refusal("invalid");
export const conflict = refusal("conflict");
export const unavailable = refusal("unavailable");
export const tooMany = (message: string, retryAfterSeconds: number) =>
  new ThreadloomError("too_many", message, { retryAfterSeconds });
export const tooLarge = (bytesAtMost: number) =>
  new ThreadloomError("too_large", `The body is larger than the ${bytesAtMost} bytes that are taken here.`);

export const assistantNotFound = (reference: string) =>
  new ThreadloomError("not_found", `Assistant '${reference}' not found.`, { missing: "assistant" });
export const assistantVersionNotFound = (assistantId: string, version: number) =>
  new ThreadloomError("not_found", `Assistant '${assistantId}' has no version ${version}.`);
export const graphNotFound = (graphId: string) =>
  new ThreadloomError("not_found", `Graph '${graphId}' not found.`, { missing: "graph" });
export const threadNotFound = (threadId: string) =>
  new ThreadloomError("not_found", `Thread '${threadId}' not found.`, { missing: "thread" });
/** Does not reveal the owner. */
export const threadTaken = (threadId: string) =>
  new ThreadloomError("conflict", `Thread '${threadId}' already exists.`);
export const runNotFound = (runId: string) =>
  new ThreadloomError("not_found", `Run '${runId}' not found.`, { missing: "run" });
export const cronNotFound = (cronId: string) =>
  new ThreadloomError("not_found", `Cron '${cronId}' not found.`);
/** Not `too_many`: clients would retry, and waiting does not help. */
export const tooManyCrons = (atMost: number) =>
  conflict(`One caller may have ${atMost} crons at most; delete some of them first.`);
export const apiKeyNotFound = (reference: string) =>
  new ThreadloomError("not_found", `There is no API key ${reference}; 'keys list' shows them.`);
export const deliveryNotFound = (runId: string) =>
  new ThreadloomError("not_found", `Run '${runId}' has no delivery of a webhook.`);
export const eventNotKept = (runId: string, eventId: number) =>
  new ThreadloomError(
    "not_found",
    eventId < 0
      ? `The events of run '${runId}' are no longer kept; read the thread's state instead.`
      : `Event ${eventId} of run '${runId}' is no longer kept; read the thread's state instead.`,
  );
export const uiNotFound = (reference: string, component: string) =>
  new ThreadloomError(
    "not_found",
    `'${reference}' has no component '${component}' in 'ui' of langgraph.json.`,
  );
export const uiFileNotFound = (file: string) => new ThreadloomError("not_found", `File '${file}' not found.`);
/** @param why one sentence */
export const consoleNotFound = (why: string) => new ThreadloomError("not_found", why);
export const checkpointNotFound = (checkpointId: string) =>
  new ThreadloomError("not_found", `Checkpoint '${checkpointId}' not found.`, { missing: "checkpoint" });
export const threadBusy = (threadId: string) =>
  new ThreadloomError(
    "conflict",
    `Thread '${threadId}' has a run in progress; wait for it, cancel it, or choose another multitask_strategy.`,
  );

/**
 * A thread changed between reading its state and writing the result: a run began or ended, or the state was pruned.
 * Nothing was written; read again before the next try.
 */
export class ThreadChangedError extends ThreadloomError {
  constructor(threadId: string) {
    super("conflict", `Thread '${threadId}' was changed by another request at the same time; try again.`);
  }
}

/** A value is too large to store, to send or to convert to JSON. A value from a graph ends the run with this error. */
export class ValueTooLargeError extends ThreadloomError {
  /** `what`: the beginning of a sentence, as "An event 'values'". `option`: the variable that sets the limit. */
  constructor(what: string, charactersAtMost: number, option?: string) {
    const megabytes = Number((charactersAtMost / 1_000_000).toPrecision(3));
    const where = option === undefined ? "" : ` (${option})`;
    super(
      "too_large",
      `${what} takes more than ${megabytes} MB as JSON, which is the most that is taken${where}.`,
    );
    this.name = "ValueTooLargeError";
  }
}

/** The caller has closed the connection: the work ends without an answer. */
export class CallerGoneError extends Error {
  constructor() {
    super("The caller has closed the connection.");
    this.name = "CallerGoneError";
  }
}

/** The project's own handlers refused a request with the SDK's `HTTPException`. */
export class HandlerRefusal extends Error implements CausedByProject {
  readonly causedByProject = true;
  constructor(
    readonly status: number,
    message: string,
    readonly headers: Readonly<Record<string, string>>,
    options?: { cause?: unknown },
  ) {
    super(message, options);
    this.name = "HandlerRefusal";
  }
}

/** SQLSTATE: the key exists already. */
export const UNIQUE_VIOLATION = "23505";

/** The SQLSTATE of an error from `pg`, or undefined for other errors. */
export const sqlState = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;

/**
 * The stored state of a thread is damaged, or storing it failed: not a fault of the caller or the graph. The log gets
 * the cause, callers a neutral sentence.
 */
export class StateStorageError extends Error implements WithoutContents {
  readonly hidesContents = true;
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "StateStorageError";
  }
}

/** The project's code failed in a request. The log gets the cause, callers a neutral sentence. */
export class ProjectCodeError extends Error implements CausedByProject, WithoutContents {
  readonly causedByProject = true;
  readonly hidesContents = true;
  constructor(message: string, options: { cause: unknown }) {
    super(message, options);
    this.name = "ProjectCodeError";
  }
}

/** Stored data can't be decrypted with the keys of this server. The log gets the cause, callers a neutral sentence. */
export class EncryptionError extends Error implements WithoutContents {
  readonly hidesContents = true;
  /** The id of the missing key. Undefined: the key is there, and the data is damaged. */
  readonly missingKeyId: string | undefined;

  constructor(
    message: string,
    { missingKeyId, ...options }: { cause?: unknown; missingKeyId?: string } = {},
  ) {
    super(message, options);
    this.name = "EncryptionError";
    this.missingKeyId = missingKeyId;
  }
}

/** The database crashed and lost the last writes of an attempt. The run starts again from the stored state. */
export class StateLostError extends Error implements WithoutContents {
  readonly hidesContents = true;
  constructor(threadId: string) {
    super(`The database has lost what was last stored of the state of thread ${threadId}.`);
    this.name = "StateLostError";
  }
}

/**
 * A reason why the process can't start, in plain sentences for the terminal. `main` prints it without a stack and exits
 * with 1.
 */
export class StartError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "StartError";
  }
}

/** The command line is wrong. Exits with 2. */
export class UsageError extends StartError {}

/**
 * The attempt no longer holds its run: the lease expired and another attempt took over, or the run ended. Nothing was
 * written. No API caller sees this error.
 */
export class LeaseLostError extends Error {
  constructor(
    readonly runId: string,
    readonly attempt: number,
  ) {
    super(`Attempt ${attempt} no longer holds run ${runId}.`);
    this.name = "LeaseLostError";
  }
}
