import { skipToken, useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { NO_OPTIONS, type RunOptions } from "./run-options.ts";

/** Undefined: the thread that does not exist yet. */
type ThreadId = string | undefined;

const keyOf = (threadId: ThreadId, assistantId: string | undefined) => [
  "playground",
  "run-options",
  threadId ?? null,
  ...(assistantId === undefined ? [] : [assistantId]),
];

/** Options of one thread and assistant, while the page is open. */
export const useRunOptions = (
  threadId: ThreadId,
  assistantId: string | undefined,
): { options: RunOptions; setOptions(options: RunOptions): void } => {
  const queries = useQueryClient();
  const { data } = useQuery<RunOptions>({
    queryKey: keyOf(threadId, assistantId),
    queryFn: skipToken,
    staleTime: Infinity,
    gcTime: Infinity,
  });
  const setOptions = useCallback(
    (options: RunOptions) => void queries.setQueryData(keyOf(threadId, assistantId), options),
    [queries, threadId, assistantId],
  );
  return { options: data ?? NO_OPTIONS, setOptions };
};

/** The new thread now exists and keeps its options. The next new thread begins without any. */
export const giveRunOptions = (
  queries: QueryClient,
  threadId: string,
  assistantId: string,
  options: RunOptions,
): void => {
  if (options !== NO_OPTIONS) queries.setQueryData(keyOf(threadId, assistantId), options);
  queries.removeQueries({ queryKey: keyOf(undefined, undefined) });
};
