import type { Interrupt, ThreadStatus } from "@langchain/langgraph-sdk";
import { useQuery, type QueryClient } from "@tanstack/react-query";
import { askedEvery } from "../server/queries.ts";
import { useConnection } from "../server/connection.tsx";

/** A thread without its values, which may be long. */
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

/** So soon others' runs on this thread are seen. */
const ASKED_EVERY_MS = 2_000;

const keyOf = (threadId: string | undefined) => ["threads", "record", threadId];

/** What the server says of the thread; null if there is none. */
export const useThreadRecord = (threadId: string | undefined) => {
  const { client } = useConnection();
  return useQuery({
    queryKey: keyOf(threadId),
    queryFn: async () => {
      const [record] = await client.threads.search({
        ids: [threadId ?? ""],
        // The client's list of fields is older than the server's.
        select: [...FIELDS] as never,
        limit: 1,
      });
      return (record as ThreadRecord | undefined) ?? null;
    },
    enabled: threadId !== undefined,
    refetchInterval: askedEvery(ASKED_EVERY_MS),
    staleTime: 0,
  });
};

/** After the page itself has changed the thread. */
export const renewThread = async (queries: QueryClient, threadId: string | undefined): Promise<void> => {
  await Promise.all([
    queries.invalidateQueries({ queryKey: keyOf(threadId) }),
    queries.invalidateQueries({ queryKey: ["threads", "list"] }),
    queries.invalidateQueries({ queryKey: ["threads", "state", threadId] }),
  ]);
};

/** A name of the thread, if somebody gave one. */
export const titleOf = (metadata: Record<string, unknown> | null | undefined): string | undefined => {
  const title = metadata?.["title"] ?? metadata?.["thread_name"];
  return typeof title === "string" && title !== "" ? title : undefined;
};
