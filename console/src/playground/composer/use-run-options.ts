import { skipToken, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { NO_OPTIONS, type RunOptions } from "./run-options.ts";

const keyOf = (assistantId: string | undefined) => ["playground", "run-options", assistantId];

/** Options per assistant, for all threads while the page is open. */
export const useRunOptions = (
  assistantId: string | undefined,
): { options: RunOptions; setOptions(options: RunOptions): void } => {
  const queries = useQueryClient();
  const { data } = useQuery<RunOptions>({
    queryKey: keyOf(assistantId),
    queryFn: skipToken,
    staleTime: Infinity,
    gcTime: Infinity,
  });
  const setOptions = useCallback(
    (options: RunOptions) => void queries.setQueryData(keyOf(assistantId), options),
    [queries, assistantId],
  );
  return { options: data ?? NO_OPTIONS, setOptions };
};
