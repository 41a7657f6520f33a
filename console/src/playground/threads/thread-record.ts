import { FIRST_MESSAGE, firstWords } from "../../parts/thread-name.ts";
import type { Interrupt, ThreadStatus } from "@langchain/langgraph-sdk";
import { useQuery, type QueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { refetchEvery } from "../../server/refetch.ts";
import { useConnection } from "../../server/connection.tsx";

/** A thread without its values, which may be large. */
export interface ThreadRecord {
  thread_id: string;
  status: ThreadStatus;
  updated_at: string;
  state_updated_at?: string;
  metadata: Record<string, unknown> | null;
  interrupts: Record<string, Interrupt[]>;
  error?: unknown;
}

const FIELDS = [
  "thread_id",
  "status",
  "updated_at",
  "state_updated_at",
  "metadata",
  "interrupts",
  "error",
] as const;

/** Also the delay until the runs of other clients appear. */
const POLL_MS = 2_000;

const keyOf = (threadId: string | undefined) => ["threads", "record", threadId];

/** Null if the thread does not exist. */
export const useThreadRecord = (threadId: string | undefined) => {
  const { client } = useConnection();
  return useQuery({
    queryKey: keyOf(threadId),
    queryFn: async () => {
      const [record] = await client.threads.search({
        ids: [threadId ?? ""],
        // The client's types lack newer fields.
        select: [...FIELDS] as never,
        limit: 1,
      });
      return (record as ThreadRecord | undefined) ?? null;
    },
    enabled: threadId !== undefined,
    refetchInterval: refetchEvery(POLL_MS),
    staleTime: 0,
  });
};

/** Call after a change of the thread by this page. */
export const renewThread = async (queries: QueryClient, threadId: string | undefined): Promise<void> => {
  await Promise.all([
    queries.invalidateQueries({ queryKey: keyOf(threadId) }),
    queries.invalidateQueries({ queryKey: ["threads", "list"] }),
    queries.invalidateQueries({ queryKey: ["threads", "state", threadId] }),
    queries.invalidateQueries({ queryKey: ["threads", "queued", threadId] }),
  ]);
};

/**
 * Null without a first message, and undefined while it is not known.
 * @param revision changes when the thread may have a first message
 */
export const useFirstWords = (
  threadId: string,
  isWanted: boolean,
  revision: string,
): string | null | undefined => {
  const { request } = useConnection();
  const [known, setKnown] = useState<string>();
  const { data, isError } = useQuery({
    queryKey: ["threads", "first-words", threadId, revision],
    queryFn: async () => {
      const [thread] = await request<{ extracted?: { first?: unknown } }[]>("POST", "/threads/search", {
        ids: [threadId],
        select: ["thread_id"],
        extract: FIRST_MESSAGE,
      });
      return firstWords(thread?.extracted?.first) ?? null;
    },
    enabled: isWanted && known === undefined,
    staleTime: Infinity,
  });
  // The first message never changes.
  if (data != null && known === undefined) setKnown(data);
  return known ?? (isError ? null : data);
};
