import type { CausedByProject, WithoutContents } from "../lib/contents.ts";

/**
 * Only `http/` maps a `kind` to a status code. The caller gets `{"detail": message}`: one sentence that names the field
 * or the id, without SQL, path or stack.
 */

export type ErrorKind =
  /** Unparseable body: 400. */
  | "malformed"
  /** No API key: 401. */
  | "unauthenticated"
  /** Unknown API key, or no permission: 403. */
  | "forbidden"
  /** Missing, or hidden from the caller: 404. */
  | "not_found"
  /** 409. */
  | "conflict"
  /** 413. */
  | "too_large"
  /** A body in a form that no route reads: 415. */
  | "unsupported"
  /** 422. */
  | "invalid"
  /** A limit is reached, nothing was done: 429 with Retry-After. */
  | "too_many"
  /** Database unreachable or memory short, nothing was stored: 503 with Retry-After. */
  | "unavailable";

/** Protocols with error codes use this. */
export type Missing = "assistant" | "graph" | "thread" | "run" | "checkpoint";

export class ThreadloomError extends Error {
  readonly missing: Missing | undefined;
  /** Undefined: the time is unknown, or a retry never helps. */
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

export const notSearchable = (key: string): ThreadloomError =>
  invalid(`'metadata': the values of '${key}' are encrypted, so nothing can be found by them.`);
export const conflict = refusal("conflict");
export const unavailable = refusal("unavailable");
export const tooMany = (message: string, retryAfterSeconds: number) =>
  new ThreadloomError("too_many", message, { retryAfterSeconds });
export const compressedBody = (encoding: string) =>
  new ThreadloomError(
    "unsupported",
    `The body is encoded as '${encoding}', which this server does not read: send it without Content-Encoding.`,
  );
const inMegabytes = (amount: number): number => Number((amount / 1_000_000).toPrecision(3));
export const tooLarge = (bytesAtMost: number) =>
  new ThreadloomError(
    "too_large",
    `The body is larger than ${inMegabytes(bytesAtMost)} MB, the most that this route takes.`,
  );

export const assistantNotFound = (reference: string) =>
  new ThreadloomError("not_found", `Assistant '${reference}' not found.`, { missing: "assistant" });
export const assistantVersionNotFound = (assistantId: string, version: number) =>
  new ThreadloomError("not_found", `Assistant '${assistantId}' has no version ${version}.`);
export const graphNotFound = (graphId: string) =>
  new ThreadloomError("not_found", `Graph '${graphId}' not found.`, { missing: "graph" });
export const threadNotFound = (threadId: string) =>
  new ThreadloomError("not_found", `Thread '${threadId}' not found.`, { missing: "thread" });
/** Must not reveal the owner. */
export const threadTaken = (threadId: string) =>
  new ThreadloomError("conflict", `Thread '${threadId}' already exists.`);
/** Also for an id that no task can have. */
export const taskNotFound = () =>
  new ThreadloomError("not_found", "There is no such task.", { missing: "run" });
export const runNotFound = (runId: string) =>
  new ThreadloomError("not_found", `Run '${runId}' not found.`, { missing: "run" });
export const cronNotFound = (cronId: string) =>
  new ThreadloomError("not_found", `Cron '${cronId}' not found.`);
/** Not `too_many`: clients would retry, but waiting does not help. */
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
export const consoleNotFound = (why: string) => new ThreadloomError("not_found", why);
export const checkpointNotFound = (checkpointId: string) =>
  new ThreadloomError("not_found", `Checkpoint '${checkpointId}' not found.`, { missing: "checkpoint" });
export const threadBusy = (threadId: string) =>
  new ThreadloomError(
    "conflict",
    `Thread '${threadId}' has a run in progress; wait for it, cancel it, or choose another multitask_strategy.`,
  );
/** A state update has no multitask_strategy. */
export const threadBusyForUpdate = (threadId: string) =>
  conflict(`Thread '${threadId}' has a run in progress; wait for it or cancel it, then try again.`);

/** A run began or ended, or a prune ran, between the read of a state and this write. Nothing was written. */
export class ThreadChangedError extends ThreadloomError {
  constructor(threadId: string) {
    super("conflict", `Thread '${threadId}' was changed by another request at the same time; try again.`);
  }
}

/** If a graph returns such a value, the run ends with this error. */
export class ValueTooLargeError extends ThreadloomError {
  /** `what` begins a sentence, as "An event 'values'". */
  constructor(what: string, charactersAtMost: number) {
    super(
      "too_large",
      `${what} takes more than ${inMegabytes(charactersAtMost)} MB as JSON, which is the most that is taken.`,
    );
    this.name = "ValueTooLargeError";
  }
}

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

export const UNIQUE_VIOLATION = "23505";

export const sqlState = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;

/**
 * Damaged state or a failed write, not a fault of the caller or the graph. The log gets the cause, callers a neutral
 * sentence.
 */
export class StateStorageError extends Error implements WithoutContents {
  readonly hidesContents = true;
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "StateStorageError";
  }
}

/** The log gets the cause, callers a neutral sentence. */
export class ProjectCodeError extends Error implements CausedByProject, WithoutContents {
  readonly causedByProject = true;
  readonly hidesContents = true;
  constructor(message: string, options: { cause: unknown }) {
    super(message, options);
    this.name = "ProjectCodeError";
  }
}

/** Callers get a neutral sentence. */
export class EncryptionError extends Error implements WithoutContents {
  readonly hidesContents = true;
  /** Undefined: the key is there, and the data is damaged. */
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

/** The object store is away, or refuses this server. A retry may succeed, as after an outage of the database. */
export class ObjectStoreError extends Error implements WithoutContents {
  readonly hidesContents = true;
  /** `what`: what it could not do, such as `read object …`. */
  constructor(what: string, options?: { cause?: unknown }) {
    super(`The object store could not ${what}.`, options);
    this.name = "ObjectStoreError";
  }
}

/** The database lost the attempt's last writes in a crash. The run starts again from the stored state. */
export class StateLostError extends Error implements WithoutContents {
  readonly hidesContents = true;
  constructor(threadId: string) {
    super(`The database has lost the last stored state of thread ${threadId}.`);
    this.name = "StateLostError";
  }
}

/** A run can't continue after its process was lost: the newest checkpoint of its thread is not one of its own. */
export class RunOvertakenError extends Error {
  constructor(runId: string) {
    super(
      `Run '${runId}' lost its process, and before it could continue, its thread got a newer checkpoint of another ` +
        "origin. Read the thread's history, and create a run from the checkpoint that you want to continue.",
    );
    this.name = "RunOvertakenError";
  }
}

/** `main` prints the message without a stack and exits with 1. */
export class StartError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "StartError";
  }
}

/** `main` exits with 2. */
export class UsageError extends StartError {}

/** Another attempt took over after the lease expired, or the run ended. Nothing was written. */
export class LeaseLostError extends Error {
  constructor(
    readonly runId: string,
    readonly attempt: number,
  ) {
    super(`Attempt ${attempt} no longer holds run ${runId}.`);
    this.name = "LeaseLostError";
  }
}
