import type { QueryClient } from "@tanstack/react-query";
import type { Input } from "./live-thread.ts";

/** What was written before there was a thread: the page of the new thread sends it. */
const keyOf = (threadId: string) => ["threads", "first-input", threadId];

export const keepFirstInput = (queries: QueryClient, threadId: string, input: Input): void => {
  queries.setQueryData(keyOf(threadId), input);
};

/** Once only: undefined the second time. */
export const takeFirstInput = (queries: QueryClient, threadId: string): Input | undefined => {
  const input = queries.getQueryData<Input>(keyOf(threadId));
  queries.removeQueries({ queryKey: keyOf(threadId) });
  return input;
};
