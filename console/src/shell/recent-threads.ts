import { useQuery } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { truncate } from "../design/truncate.ts";
import type { Command } from "../parts/commands.tsx";
import { FIRST_MESSAGE, threadName, type NamedThread } from "../parts/thread-name.ts";
import { useConnection } from "../server/connection.tsx";

const LISTED = 30;
const NAME_CHARACTERS = 60;

/** Commands that open the threads that changed last. */
export const useRecentThreads = (): Command[] => {
  const { search } = useConnection();
  const [, navigate] = useLocation();
  const { data } = useQuery({
    queryKey: ["threads", "recent"],
    staleTime: 0,
    queryFn: () =>
      search<NamedThread>("/threads/search", {
        limit: LISTED,
        sort_by: "updated_at",
        sort_order: "desc",
        select: ["thread_id", "metadata"],
        extract: FIRST_MESSAGE,
      }),
  });
  return (data?.items ?? []).map((thread) => ({
    label: truncate(threadName(thread), NAME_CHARACTERS),
    group: "Recent threads",
    id: thread.thread_id,
    run: () => navigate(`/threads/${thread.thread_id}`),
  }));
};
