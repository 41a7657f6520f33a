import type { CausedByProject, WithoutContents } from "../lib/contents.ts";

/**
 * The error catalogue: every way in which a request can be refused, declared once.
 *
 * Services, repositories and the engine throw these; only `http/` turns a `kind` into a status code.
 * The message goes to the caller as `{"detail": message}`, so it is one clear sentence that names the
 * offending field or id and never holds anything of ours (SQL, paths, stack traces).
 */

/** What went wrong, from the caller's point of view. */
export type ErrorKind =
  /** The request can't be parsed at all (malformed JSON). HTTP 400. */
  | "malformed"
  /** No API key was given. HTTP 401. */
  | "unauthenticated"
  /** An API key was given and is not one of ours, or it may not do this. HTTP 403. */
  | "forbidden"
  /** The thing does not exist, or is not the caller's. HTTP 404. */
  | "not_found"
  /** The request contradicts the present state, e.g. a run is in progress. HTTP 409. */
  | "conflict"
  /** The body has more bytes than the route takes. HTTP 413. */
  | "too_large"
  /** A field does not validate; the sentence names it. HTTP 422. */
  | "invalid"
  /** The caller asks for more than one caller may have; nothing was done. HTTP 429 with Retry-After. */
  | "too_many"
  /** The database can't be reached for now, or memory is short; nothing was stored. HTTP 503 with Retry-After. */
  | "unavailable";

/** What is not there, for those who tell it by a code. */
export type Missing = "assistant" | "graph" | "thread" | "run" | "checkpoint";

/** An error whose message is meant for the caller. */
export class ThreadloomError extends Error {
  readonly missing: Missing | undefined;
  /** When it is worth trying again; undefined: nobody knows, or never. */
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
/** Revoked and expired ones, too: who has one is not told that it was good once. */
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
/** Whose it is, is not told. */
export const threadTaken = (threadId: string) =>
  new ThreadloomError("conflict", `Thread '${threadId}' already exists.`);
export const runNotFound = (runId: string) =>
  new ThreadloomError("not_found", `Run '${runId}' not found.`, { missing: "run" });
export const cronNotFound = (cronId: string) =>
  new ThreadloomError("not_found", `Cron '${cronId}' not found.`);
/** A conflict, which clients do not try again: waiting does not help. */
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
 * A thread was changed between reading its state and writing what was made of it: a run came or went, or what was
 * read has been pruned. Nothing was written; whoever reads afresh may try again.
 */
export class ThreadChangedError extends ThreadloomError {
  constructor(threadId: string) {
    super("conflict", `Thread '${threadId}' was changed by another request at the same time; try again.`);
  }
}

/** A value is too large to be stored, sent, or made JSON of; what a graph gave ends its run with this. */
export class ValueTooLargeError extends ThreadloomError {
  /** `what`: the beginning of a sentence, as "An event 'values'"; `option`: the variable that says so, if one does. */
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

/** Whoever asked has closed the connection: the work ends, and nobody is told. */
export class CallerGoneError extends Error {
  constructor() {
    super("The caller has closed the connection.");
    this.name = "CallerGoneError";
  }
}

/** Handlers of the project's own have refused a request, in their own words: the SDK's `HTTPException`. */
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

/** SQLSTATE: a row with that key is there already. */
export const UNIQUE_VIOLATION = "23505";

/** Postgres SQLSTATE of an error that `pg` threw, or undefined for anything else. */
export const sqlState = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;

/**
 * What is stored of a thread is not as it should be, or storing it failed: a fault of ours or of the database, not of
 * the caller or his graph. For the log, with its cause; callers get a neutral sentence.
 */
export class StateStorageError extends Error implements WithoutContents {
  readonly hidesContents = true;
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "StateStorageError";
  }
}

/** Code of the project has failed in a request. For the log, with its cause; callers get a neutral sentence. */
export class ProjectCodeError extends Error implements CausedByProject, WithoutContents {
  readonly causedByProject = true;
  readonly hidesContents = true;
  constructor(message: string, options: { cause: unknown }) {
    super(message, options);
    this.name = "ProjectCodeError";
  }
}

/**
 * What is stored can't be opened with the keys of this server. For the log, whose reader can mend it; callers get a neutral
 * sentence.
 */
export class EncryptionError extends Error implements WithoutContents {
  readonly hidesContents = true;
  /** The id of the key that is missing. Undefined: it is there, and what is stored was damaged. */
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

/** The database has crashed and lost what an attempt had stored last: it begins anew from what is there. */
export class StateLostError extends Error implements WithoutContents {
  readonly hidesContents = true;
  constructor(threadId: string) {
    super(`The database has lost what was last stored of the state of thread ${threadId}.`);
    this.name = "StateLostError";
  }
}

/**
 * A reason why the process can't start (a flag, a port, the embedded database), as one or more plain sentences
 * for the person at the terminal. Never reaches an HTTP caller; `main` prints it without a stack and exits 1.
 */
export class StartError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "StartError";
  }
}

/** The same where the reason is how a command was called: what stands on the command line. It exits 2. */
export class UsageError extends StartError {}

/**
 * An attempt found that it no longer holds its run: its lease expired and another attempt took over, or the run
 * was ended. Nothing of what it wanted to write was written. Never reaches a caller of the API.
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
