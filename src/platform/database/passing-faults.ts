import { setTimeout as delay } from "node:timers/promises";
import { createBackOff } from "../lib/back-off.ts";
import { sqlState } from "../domain/errors.ts";

/*
 * The one list of what fails because of the moment and not because of what was asked: the database is away, starting,
 * stopping, full or no longer the primary, or two transactions were in each other's way. And the one way to try again.
 */

/**
 * query_canceled: a `statement_timeout` of the role or the database was over, most often behind a lock, or somebody
 * called `pg_cancel_backend`. Whoever sets a `statement_timeout` of his own takes it for his answer (bounded-reads.ts).
 */
const CANCELLED_STATE = "57014";
/** Others were in the way; this transaction was rolled back, and works when it is tried again. */
const CONTENTION_STATES = new Set([
  "40001", // serialization_failure
  "40P01", // deadlock_detected
  "55P03", // lock_not_available: somebody has set a lock_timeout
  CANCELLED_STATE,
]);

/** The server did not take the statement: nothing of it can have been committed. */
const REFUSED_STATES = new Set([
  "25006", // read_only_sql_transaction: this was the primary, and a failover has made it a standby
  "57P03", // cannot_connect_now: it starts, stops or recovers
]);
/** Insufficient resources: connections, memory, disk. The operator's to mend, and no fault of any run. */
const RESOURCES_CLASS = "53";
/**
 * What PostgreSQL 15 says with its state of internal errors (XX000) when a session can't begin since the disk is full:
 * write_item in its relcache.c. Later versions say disk_full.
 */
const NO_ROOM_FOR_SESSION = { state: "XX000", message: /^could not write init file/ };

/** SQLSTATE: no room on the disk, or for this role. */
const NO_ROOM_STATES = new Set(["53100", "53400"]);

const couldNotBeginSession = (error: unknown): boolean =>
  sqlState(error) === NO_ROOM_FOR_SESSION.state &&
  error instanceof Error &&
  NO_ROOM_FOR_SESSION.message.test(error.message);

/** Whether the database refused a statement, or a session, because its disk is full. */
export const isOutOfRoom = (error: unknown): boolean =>
  NO_ROOM_STATES.has(sqlState(error) ?? "") || couldNotBeginSession(error);

/** The server ended the session; whether what was under way is committed, nobody knows. */
const ENDED_STATES = new Set([
  "57P01", // admin_shutdown
  "57P02", // crash_shutdown
  "57P05", // idle_session_timeout
  "25P03", // idle_in_transaction_session_timeout
  "25P04", // transaction_timeout
]);
/** Connection exceptions, and what PgBouncer says when the server behind it is away (08P01). */
const CONNECTION_CLASS = "08";

/** The connection did not come about: no statement was sent. */
const NOT_CONNECTED_CODES = new Set([
  "EADDRNOTAVAIL",
  "EAI_AGAIN",
  "ECONNREFUSED",
  "EHOSTDOWN",
  "EHOSTUNREACH",
  "EMFILE",
  "ENETDOWN",
  "ENETUNREACH",
  "ENFILE",
  "ENOENT", // the socket's file, of a server on this machine
  "ENOTFOUND",
]);
/** These come while a connection is made and also later. */
const CONNECTION_CODES = new Set(["ECONNABORTED", "ECONNRESET", "ENETRESET", "EPIPE", "ETIMEDOUT"]);

/** `pg` says these only in words. */
const NOT_CONNECTED_MESSAGES =
  /^(timeout exceeded when trying to connect|timeout expired|Connection terminated due to connection timeout)/;
const LOST_MESSAGES =
  /^(Connection terminated|Client has encountered a connection error|Client was closed|Query read timeout)/;

const isConnecting = (error: Error): boolean =>
  "syscall" in error && (error.syscall === "connect" || error.syscall === "getaddrinfo");

/**
 * Whether a statement was cancelled (see CANCELLED_STATE). It passes, but one that always takes too long never does: what
 * is tried again without an end, or before the work of others, needs another end for it.
 */
export const isCancelled = (error: unknown): boolean => sqlState(error) === CANCELLED_STATE;

/** Whether a statement failed because of others at the same time: it was rolled back, and the database is there. */
export const isContention = (error: unknown): boolean => CONTENTION_STATES.has(sqlState(error) ?? "");

const wasNotTaken = (error: Error): boolean => {
  if (error instanceof AggregateError) return error.errors.some(isPassing); // one per address that was tried
  const state = sqlState(error);
  if (state === undefined) return NOT_CONNECTED_MESSAGES.test(error.message);
  return (
    CONTENTION_STATES.has(state) ||
    REFUSED_STATES.has(state) ||
    (/^[0-9A-Z]{5}$/.test(state) && state.startsWith(RESOURCES_CLASS)) ||
    couldNotBeginSession(error) ||
    NOT_CONNECTED_CODES.has(state) ||
    (CONNECTION_CODES.has(state) && isConnecting(error))
  );
};

const wasLost = (error: Error): boolean => {
  const state = sqlState(error);
  if (state === undefined) return LOST_MESSAGES.test(error.message);
  return ENDED_STATES.has(state) || state.startsWith(CONNECTION_CLASS) || CONNECTION_CODES.has(state);
};

/** Whether a statement failed because of the moment, not because of what was asked. It may work the next time. */
export const isPassing = (error: unknown): boolean =>
  error instanceof Error && (wasNotTaken(error) || wasLost(error));

/** Whether a statement that failed like this may have been committed all the same: only the answer was lost. */
export const mayHaveBeenCommitted = (error: unknown): boolean =>
  error instanceof Error && !wasNotTaken(error) && wasLost(error);

/** insufficient_privilege: the role may not use the schema, or a table in it. */
const NO_RIGHT_STATE = "42501";

/**
 * Whether a database can't be used at all, now (see `isPassing`) or as it is named: login refused, no such database, or a role
 * that has no rights in it.
 */
export const isUnusable = (error: unknown): boolean =>
  isPassing(error) || /^(28|3D|42501)/.test(sqlState(error) ?? "");

/** Why it can't be, as the end of a sentence without its full stop. */
export const unusableReason = (error: unknown): string => {
  const reason = (error instanceof Error && error.message) || (sqlState(error) ?? "");
  return sqlState(error) === NO_RIGHT_STATE
    ? `${reason}; docs/database-role.md says which rights its role needs`
    : reason;
};

export interface RetryOptions {
  /** No try begins later than so many milliseconds after the first one; without it there is no end. */
  forMs?: number;
  /** Asked before each further try: whether there still is somebody for whom it is made. */
  isWanted?: () => boolean;
  /** After which errors to try again, instead of all that pass. `isRetry`: of the try that failed. */
  after?: (error: unknown, isRetry: boolean) => boolean;
}

/**
 * Does `work`, again and again with growing pauses while it fails for what passes. Throws the last error. `isRetry`:
 * a try before may have been committed (see `mayHaveBeenCommitted`), so work that must not be done twice has to look.
 */
export const retryPassing = async <Result>(
  work: (isRetry: boolean) => Promise<Result>,
  { forMs = Infinity, isWanted = () => true, after = isPassing }: RetryOptions = {},
): Promise<Result> => {
  const giveUpAt = performance.now() + forMs;
  const backOff = createBackOff();
  for (let isRetry = false; ; isRetry = true) {
    try {
      return await work(isRetry);
    } catch (error) {
      if (!after(error, isRetry) || !isWanted()) throw error;
      const pause = backOff.next();
      if (performance.now() + pause > giveUpAt) throw error;
      await delay(pause);
      if (!isWanted()) throw error;
    }
  }
};
