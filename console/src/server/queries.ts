import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { isAuthError, isTransient, statusOf } from "./connection.tsx";

/** A request that was refused for coming too often is not sent again at once. */
const TOO_MANY_REQUESTS = 429;

const shouldRetry = (tries: number, error: Error): boolean =>
  tries < 2 && isTransient(error) && statusOf(error) !== TOO_MANY_REQUESTS;

/** After a fault, so that a server which comes back is not met by every tab at once. */
const AFTER_FAULT_MS = 10_000;

/**
 * A `refetchInterval`: asks again every `milliseconds` (false: not), less often after a fault, and no more after one that stays. What
 * could not be read comes by itself when the server is back.
 */
export const refetchEvery =
  (milliseconds: number | false) =>
  ({ state: { error } }: { state: { error: Error | null } }): number | false => {
    if (error === null) return milliseconds;
    return isTransient(error) ? Math.max(milliseconds || 0, AFTER_FAULT_MS) : false;
  };

/**
 * What is known of the server, for one caller alone: the next one may see other things.
 * @param onAuthError told whenever the server refuses this caller something
 */
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
