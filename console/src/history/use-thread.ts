import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { refetchEvery } from "../server/refetch.ts";
import { useConnection } from "../server/connection.tsx";

const BUSY_POLL_MS = 1_000;
const IDLE_POLL_MS = 5_000;

const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

/** Refreshes the checkpoints after each change of the thread. */
export const useThread = (threadId: string) => {
  const { client } = useConnection();
  const queries = useQueryClient();
  const { data, error, refetch } = useQuery({
    queryKey: ["threads", threadId, "record"],
    queryFn: () => client.threads.get(threadId),
    refetchInterval: (query) =>
      refetchEvery(query.state.data?.status === "busy" ? BUSY_POLL_MS : IDLE_POLL_MS)(query),
  });
  const changedAt = data === undefined ? undefined : `${data.status} ${data.state_updated_at}`;
  const before = useRef<string>(undefined);
  useEffect(() => {
    if (before.current !== undefined && before.current !== changedAt) {
      void queries.invalidateQueries({ queryKey: ["threads", threadId, "history"] });
      void queries.invalidateQueries({ queryKey: ["threads", threadId, "checkpoint"] });
    }
    before.current = changedAt;
  }, [changedAt, queries, threadId]);
  return {
    status: data?.status,
    assistantId: textOf(data?.metadata?.["assistant_id"]),
    error,
    refetch: () => void refetch(),
  };
};
