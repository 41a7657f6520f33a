import { setTimeout as delay } from "node:timers/promises";
import { createBackOff } from "../lib/back-off.ts";
import { ObjectStoreError, sqlState } from "../domain/errors.ts";

/* The only list of faults that may pass, and the only retry loop. */

/**
 * query_canceled, by a `statement_timeout` or `pg_cancel_backend`. For bounded-reads.ts this state means that a search
 * took too long.
 */
const CANCELLED_STATE = "57014";
/** The transaction was rolled back, and a retry works. */
const CONTENTION_STATES = new Set([
  "40001", // serialization_failure
  "40P01", // deadlock_detected
  "55P03", // lock_not_available: by a lock_timeout
  CANCELLED_STATE,
]);

/** Nothing was committed. */
const REFUSED_STATES = new Set([
  "25006", // read_only_sql_transaction: a failover has made this server a standby
  "57P03", // cannot_connect_now: starting, stopping or recovering
]);
/** Connections, memory or disk. The operator must act; the run has no fault. */
const RESOURCES_CLASS = "53";
/**
 * PostgreSQL 15 reports a full disk at the start of a session as an internal error (write_item in its relcache.c).
 * Later versions report disk_full.
 */
const NO_ROOM_FOR_SESSION = { state: "XX000", message: /^could not write init file/ };

const NO_ROOM_STATES = new Set(["53100", "53400"]);

const couldNotBeginSession = (error: unknown): boolean =>
  sqlState(error) === NO_ROOM_FOR_SESSION.state &&
  error instanceof Error &&
  NO_ROOM_FOR_SESSION.message.test(error.message);

export const isOutOfRoom = (error: unknown): boolean =>
  NO_ROOM_STATES.has(sqlState(error) ?? "") || couldNotBeginSession(error);

/** The statement may or may not be committed. */
const ENDED_STATES = new Set([
  "57P01", // admin_shutdown
  "57P02", // crash_shutdown
  "57P05", // idle_session_timeout
  "25P03", // idle_in_transaction_session_timeout
  "25P04", // transaction_timeout
]);
/** Includes PgBouncer's error for an unreachable server (08P01). */
const CONNECTION_CLASS = "08";

/** No statement was sent. */
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
  "ENOENT", // the socket file of a local server
  "ENOTFOUND",
]);
/** Occur while connecting, and later. */
const CONNECTION_CODES = new Set(["ECONNABORTED", "ECONNRESET", "ENETRESET", "EPIPE", "ETIMEDOUT"]);

/** `pg` reports these without a code. */
const NOT_CONNECTED_MESSAGES =
  /^(timeout exceeded when trying to connect|timeout expired|Connection terminated due to connection timeout)/;
const LOST_MESSAGES =
  /^(Connection terminated|Client has encountered a connection error|Client was closed|Query read timeout)/;

const isConnecting = (error: Error): boolean =>
  "syscall" in error && (error.syscall === "connect" || error.syscall === "getaddrinfo");

/** A statement that is always too slow fails like this each time, so retries need another limit. */
export const isCancelled = (error: unknown): boolean => sqlState(error) === CANCELLED_STATE;

/** The transaction was rolled back; the database is reachable. */
export const isContention = (error: unknown): boolean => CONTENTION_STATES.has(sqlState(error) ?? "");

const wasNotTaken = (error: Error): boolean => {
  if (error instanceof AggregateError) return error.errors.some(isPassing); // one error per tried address
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

export const isPassing = (error: unknown): boolean =>
  error instanceof Error && (wasNotTaken(error) || wasLost(error) || error instanceof ObjectStoreError);

/** The connection was lost after the statement was sent. */
export const mayHaveBeenCommitted = (error: unknown): boolean =>
  error instanceof Error && !wasNotTaken(error) && wasLost(error);

const NO_RIGHT_STATE = "42501";

/** A passing fault, a refused login, a missing database, or a role without rights. */
export const isUnusable = (error: unknown): boolean =>
  isPassing(error) || /^(28|3D|42501)/.test(sqlState(error) ?? "");

/** The end of a sentence, without its full stop. */
export const unusableReason = (error: unknown): string => {
  const reason = (error instanceof Error && error.message) || (sqlState(error) ?? "");
  return sqlState(error) === NO_RIGHT_STATE
    ? `${reason}; docs/database-role.md says which rights its role needs`
    : reason;
};

/** Longer than the locks of a migration. A statement that is always too slow must not be tried for ever. */
const CANCELLED_FOR_MS = 60_000;

/** For `retryPassing` without a time limit: from now on, waits for an unreachable database, and a minute for a slow one. */
export const unlessAlwaysCancelled = (): ((error: unknown) => boolean) => {
  const giveUpAt = performance.now() + CANCELLED_FOR_MS;
  return (error) => isPassing(error) && (!isCancelled(error) || performance.now() < giveUpAt);
};

interface RetryOptions {
  forMs?: number;
  isWanted?: () => boolean;
  /** Whether to retry. Default: after all passing faults. */
  after?: (error: unknown, isRetry: boolean) => boolean;
}

/**
 * Throws the last error. `isRetry`: an earlier try may have been committed, so work that must not run twice has to
 * check.
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
