import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { refetchEvery } from "./refetch.ts";
import { isAuthError, isTransient, statusOf } from "./api-error.ts";

const TOO_MANY_REQUESTS = 429;

const shouldRetry = (tries: number, error: Error): boolean =>
  tries < 2 && isTransient(error) && statusOf(error) !== TOO_MANY_REQUESTS;

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
