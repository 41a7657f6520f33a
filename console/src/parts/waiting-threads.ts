import { useQuery } from "@tanstack/react-query";
import { useConnection } from "../server/connection.tsx";
import { refetchEvery } from "../server/refetch.ts";

/** Of all queries for threads that wait for a person. Invalidate it after an answer. */
export const WAITING_KEY = ["threads", "waiting"] as const;

const POLL_MS = 15_000;

/** Undefined while unknown, or if the server does not count. */
export const useWaitingCount = (): number | undefined => {
  const { request } = useConnection();
  const { data } = useQuery({
    queryKey: [...WAITING_KEY, "count"],
    queryFn: async () => {
      const count = await request<unknown>("POST", "/threads/count", { status: "interrupted" });
      return typeof count === "number" ? count : null;
    },
    refetchInterval: refetchEvery(POLL_MS),
  });
  return data ?? undefined;
};
