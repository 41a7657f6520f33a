import { isTransient, statusOf } from "./api-error.ts";

const TOO_MANY_REQUESTS = 429;

/** Keeps all tabs from querying a restarted server at the same moment. */
const AFTER_FAULT_MS = 10_000;

/**
 * A `refetchInterval` (false: no polling). Still polls after a transient error, so data appear when the
 * server is back.
 */
export const refetchEvery =
  (milliseconds: number | false) =>
  ({ state: { error } }: { state: { error: Error | null } }): number | false => {
    if (error === null) return milliseconds;
    if (!isTransient(error)) return false;
    return statusOf(error) === TOO_MANY_REQUESTS
      ? Math.max(milliseconds || 0, AFTER_FAULT_MS)
      : AFTER_FAULT_MS;
  };
