import type { QueryClient } from "@tanstack/react-query";
import type { Input } from "./input.ts";
import type { ShownMessage } from "../messages/messages.ts";

const keyOf = (threadId: string) => ["threads", "first-input", threadId];
const NO_MESSAGES: readonly ShownMessage[] = [];

/** The run has started, and its stream will repeat the input. */
export const keepFirstInput = (queries: QueryClient, threadId: string, input: Input): void => {
  const { messages } = input;
  if (Array.isArray(messages)) queries.setQueryData(keyOf(threadId), messages);
};

/** Shown until the stream has the messages. */
export const firstMessages = (queries: QueryClient, threadId: string): readonly ShownMessage[] =>
  queries.getQueryData<ShownMessage[]>(keyOf(threadId)) ?? NO_MESSAGES;
