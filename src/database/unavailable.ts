import { sqlState } from "../lib/errors.ts";

/** SQLSTATE classes and codes that say: the server is away, starting, stopping or full; try again. */
const UNAVAILABLE_STATES = new Set(["57P01", "57P02", "57P03", "53300"]);
const SOCKET_ERRORS = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ENOTFOUND",
  "EHOSTUNREACH",
  "ENOENT",
]);
/** `pg` says these only in words. */
const MESSAGES =
  /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed|Query read timeout)/;

/** What can only happen before a statement is sent. */
const NOT_CONNECTED = new Set(["57P03", "53300", "ECONNREFUSED", "ENOTFOUND", "EHOSTUNREACH", "ENOENT"]);

/** Whether a statement that failed like this may have been committed all the same: only the answer was lost. */
export const mayHaveBeenCommitted = (error: unknown): boolean =>
  error instanceof Error &&
  isDatabaseUnavailable(error) &&
  !(error instanceof AggregateError) &&
  !NOT_CONNECTED.has(sqlState(error) ?? "") &&
  !error.message.startsWith("timeout exceeded when trying to connect");

/** Whether a statement failed because the database can't be reached, not because of what was asked. */
export const isDatabaseUnavailable = (error: unknown): boolean => {
  if (!(error instanceof Error)) return false;
  if (error instanceof AggregateError && error.errors.some(isDatabaseUnavailable)) return true;
  const state = sqlState(error);
  if (state !== undefined) {
    return UNAVAILABLE_STATES.has(state) || SOCKET_ERRORS.has(state) || state.startsWith("08");
  }
  return MESSAGES.test(error.message);
};
