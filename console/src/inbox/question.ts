import type { Interrupt } from "@langchain/langgraph-sdk";
import { useQuery } from "@tanstack/react-query";
import { isObject } from "../parts/is-object.ts";
import { WAITING_KEY } from "../parts/waiting-threads.ts";
import { useConnection } from "../server/connection.tsx";
import { refetchEvery } from "../server/refetch.ts";
import type { WaitingThread } from "./waiting-list.ts";

export interface SelectedThread extends WaitingThread {
  status: string;
}

const POLL_MS = 3_000;

/** Null if the thread does not exist. */
export const useSelectedThread = (threadId: string) => {
  const { request } = useConnection();
  return useQuery({
    queryKey: [...WAITING_KEY, "thread", threadId],
    queryFn: async () => {
      const [thread] = await request<SelectedThread[]>("POST", "/threads/search", {
        ids: [threadId],
        select: ["thread_id", "status", "state_updated_at", "metadata"],
        limit: 1,
      });
      return thread ?? null;
    },
    refetchInterval: refetchEvery(POLL_MS),
  });
};

export interface ShownMessage {
  type: unknown;
  content: unknown;
}

export interface StoredQuestion {
  revision: string;
  interrupts: Record<string, Interrupt[]>;
  first: unknown;
  /** The last messages, oldest first. */
  messages: readonly ShownMessage[];
  /** Only if nothing else waits: the nodes before which the graph has stopped. */
  next: readonly string[];
}

const MESSAGES = [3, 2, 1];

/** Large, so it is read once for each state of the thread. @param revision undefined: not yet known */
export const useQuestion = (threadId: string, revision: string | undefined) => {
  const { request } = useConnection();
  return useQuery({
    // Not under the key that an answer renews.
    queryKey: ["threads", "question", threadId, revision],
    queryFn: async (): Promise<StoredQuestion> => {
      const [thread] = await request<
        { interrupts?: Record<string, Interrupt[]>; extracted?: Record<string, unknown> }[]
      >("POST", "/threads/search", {
        ids: [threadId],
        select: ["interrupts"],
        extract: {
          first: "values.messages[0].content",
          ...Object.fromEntries(
            MESSAGES.flatMap((place) => [
              [`type${place}`, `values.messages[-${place}].type`],
              [`content${place}`, `values.messages[-${place}].content`],
            ]),
          ),
        },
        limit: 1,
      });
      const extracted = thread?.extracted ?? {};
      const interrupts = isObject(thread?.interrupts) ? thread.interrupts : {};
      const hasQuestion = Object.values(interrupts).some((each) => each.length > 0);
      const state = hasQuestion
        ? undefined
        : await request<{ next?: string[] }>(
            "GET",
            `/threads/${encodeURIComponent(threadId)}/state?select=next`,
          );
      return {
        revision: revision ?? "",
        interrupts,
        first: extracted["first"],
        messages: MESSAGES.map((place) => ({
          type: extracted[`type${place}`],
          content: extracted[`content${place}`],
        })).filter(({ content }) => content != null),
        next: state?.next ?? [],
      };
    },
    enabled: revision !== undefined,
    staleTime: Infinity,
  });
};
