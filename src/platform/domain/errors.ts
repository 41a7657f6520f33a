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
  override readonly name: string = "ThreadloomError";
  readonly missing: Missing | undefined;
  /** Undefined: the time is unknown, or a retry never helps. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    readonly kind: ErrorKind,
    message: string,
    options?: { cause?: unknown; missing?: Missing; retryAfterSeconds?: number },
  ) {
    super(message, options);
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

const notFound = (message: string, missing?: Missing): ThreadloomError =>
  new ThreadloomError("not_found", message, missing === undefined ? undefined : { missing });

export const assistantNotFound = (reference: string) =>
  notFound(`Assistant '${reference}' not found.`, "assistant");
export const assistantVersionNotFound = (assistantId: string, version: number) =>
  notFound(`Assistant '${assistantId}' has no version ${version}.`);
export const graphNotFound = (graphId: string) => notFound(`Graph '${graphId}' not found.`, "graph");
export const threadNotFound = (threadId: string) => notFound(`Thread '${threadId}' not found.`, "thread");
/** Must not reveal the owner. */
export const threadTaken = (threadId: string) => conflict(`Thread '${threadId}' already exists.`);
/** Also for an id that no task can have. */
export const taskNotFound = () => notFound("There is no such task.", "run");
export const runNotFound = (runId: string) => notFound(`Run '${runId}' not found.`, "run");
export const cronNotFound = (cronId: string) => notFound(`Cron '${cronId}' not found.`);
/** Not `too_many`: clients would retry, but waiting does not help. */
export const tooManyCrons = (atMost: number) =>
  conflict(`One caller may have ${atMost} crons at most; delete some of them first.`);
export const apiKeyNotFound = (reference: string) =>
  notFound(`There is no API key ${reference}; 'keys list' shows them.`);
export const deliveryNotFound = (runId: string) => notFound(`Run '${runId}' has no delivery of a webhook.`);
export const eventNotKept = (runId: string, eventId: number) =>
  notFound(
    eventId < 0
      ? `The events of run '${runId}' are no longer kept; read the thread's state instead.`
      : `Event ${eventId} of run '${runId}' is no longer kept; read the thread's state instead.`,
  );
export const uiNotFound = (reference: string, component: string) =>
  notFound(`'${reference}' has no component '${component}' in 'ui' of langgraph.json.`);
export const uiFileNotFound = (file: string) => notFound(`File '${file}' not found.`);
export const consoleNotFound = (why: string) => notFound(why);
export const checkpointNotFound = (checkpointId: string) =>
  notFound(`Checkpoint '${checkpointId}' not found.`, "checkpoint");
export const threadBusy = (threadId: string) =>
  conflict(
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
  override readonly name = "ValueTooLargeError";
  /** `what` begins a sentence, as "An event 'values'". */
  constructor(what: string, charactersAtMost: number) {
    super(
      "too_large",
      `${what} takes more than ${inMegabytes(charactersAtMost)} MB as JSON, which is the most that is taken.`,
    );
  }
}

export class CallerGoneError extends Error {
  override readonly name = "CallerGoneError";
  constructor() {
    super("The caller has closed the connection.");
  }
}

/** The project's own handlers refused a request with the SDK's `HTTPException`. */
export class HandlerRefusal extends Error implements CausedByProject {
  override readonly name = "HandlerRefusal";
  readonly causedByProject = true;
  constructor(
    readonly status: number,
    message: string,
    readonly headers: Readonly<Record<string, string>>,
    options?: { cause?: unknown },
  ) {
    super(message, options);
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
  override readonly name = "StateStorageError";
}

/** The log gets the cause, callers a neutral sentence. */
export class ProjectCodeError extends Error implements CausedByProject, WithoutContents {
  readonly causedByProject = true;
  readonly hidesContents = true;
  override readonly name = "ProjectCodeError";
}

/** Callers get a neutral sentence. */
export class EncryptionError extends Error implements WithoutContents {
  override readonly name = "EncryptionError";
  readonly hidesContents = true;
  /** Undefined: the key is there, and the data is damaged. */
  readonly missingKeyId: string | undefined;

  constructor(
    message: string,
    { missingKeyId, ...options }: { cause?: unknown; missingKeyId?: string } = {},
  ) {
    super(message, options);
    this.missingKeyId = missingKeyId;
  }
}

/** The object store is away, or refuses this server. A retry may succeed, as after an outage of the database. */
export class ObjectStoreError extends Error implements WithoutContents {
  override readonly name = "ObjectStoreError";
  readonly hidesContents = true;
  /** `what`: what it could not do, such as `read object …`. */
  constructor(what: string, options?: { cause?: unknown }) {
    super(`The object store could not ${what}.`, options);
  }
}

/** The database lost the attempt's last writes in a crash. The run starts again from the stored state. */
export class StateLostError extends Error implements WithoutContents {
  override readonly name = "StateLostError";
  readonly hidesContents = true;
  constructor(threadId: string) {
    super(`The database has lost the last stored state of thread ${threadId}.`);
  }
}

/** A run can't continue after its process was lost: the newest checkpoint of its thread is not one of its own. */
export class RunOvertakenError extends Error {
  override readonly name = "RunOvertakenError";
  constructor(runId: string) {
    super(
      `Run '${runId}' lost its process, and before it could continue, its thread got a newer checkpoint of another ` +
        "origin. Read the thread's history, and create a run from the checkpoint that you want to continue.",
    );
  }
}

/** `main` prints the message without a stack and exits with 1. */
export class StartError extends Error {
  override readonly name: string = "StartError";
}

/** `main` exits with 2. */
export class UsageError extends StartError {}

/** Another attempt took over after the lease expired, or the run ended. Nothing was written. */
export class LeaseLostError extends Error {
  override readonly name = "LeaseLostError";
  constructor(
    readonly runId: string,
    readonly attempt: number,
  ) {
    super(`Attempt ${attempt} no longer holds run ${runId}.`);
  }
}
