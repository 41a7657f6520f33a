import type { QueryClient } from "@tanstack/react-query";
import type { Input } from "./live-thread.ts";

/** The page of a new thread sends the input that was written before the thread existed. */
const keyOf = (threadId: string) => ["threads", "first-input", threadId];

export const keepFirstInput = (queries: QueryClient, threadId: string, input: Input): void => {
  queries.setQueryData(keyOf(threadId), input);
};

/** Undefined at the second call. */
export const takeFirstInput = (queries: QueryClient, threadId: string): Input | undefined => {
  const input = queries.getQueryData<Input>(keyOf(threadId));
  queries.removeQueries({ queryKey: keyOf(threadId) });
  return input;
};
