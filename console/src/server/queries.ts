import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { isAuthError, isTransient, statusOf } from "./connection.tsx";

const TOO_MANY_REQUESTS = 429;

const shouldRetry = (tries: number, error: Error): boolean =>
  tries < 2 && isTransient(error) && statusOf(error) !== TOO_MANY_REQUESTS;

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
    return isTransient(error) ? Math.max(milliseconds || 0, AFTER_FAULT_MS) : false;
  };

/** One cache per caller, because callers may see different data. */
export const createQueries = (onAuthError: () => void): QueryClient => {
  const onError = (error: Error): void => {
    if (isAuthError(error)) onAuthError();
  };
  return new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      queries: {
        retry: shouldRetry,
        staleTime: 5_000,
        networkMode: "always",
        refetchInterval: refetchEvery(false),
      },
      mutations: { retry: false, networkMode: "always" },
    },
  });
};
