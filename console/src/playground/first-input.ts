import type { QueryClient } from "@tanstack/react-query";
import type { Input } from "./live-thread.ts";

/** Written before the thread existed; the page of the thread sends it. */
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
