import { useInfiniteQuery, type InfiniteData, type QueryClient } from "@tanstack/react-query";
import { FIRST_MESSAGE, type NamedThread } from "../parts/thread-name.ts";
import { WAITING_KEY } from "../parts/waiting-threads.ts";
import { useConnection, type SearchPage } from "../server/connection.tsx";
import { refetchEvery } from "../server/refetch.ts";

export interface WaitingThread extends NamedThread {
  state_updated_at: string;
}

export type Order = "asc" | "desc";

const PAGE = 100;
const POLL_MS = 4_000;
const LIST_KEY = [...WAITING_KEY, "list"];

const threadsOf = ({ pages }: InfiniteData<SearchPage<WaitingThread>>): WaitingThread[] =>
  pages.flatMap(({ items }) => items);

/**
 * @param order `asc`: those that wait longest first
 * @param metadata what the metadata of the threads contain
 */
export const useWaitingList = (order: Order, metadata: Readonly<Record<string, string>> = {}) => {
  const { search } = useConnection();
  return useInfiniteQuery({
    queryKey: [...LIST_KEY, order, metadata],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) =>
      search<WaitingThread>("/threads/search", {
        status: "interrupted",
        metadata,
        limit: PAGE,
        cursor: pageParam,
        sort_by: "state_updated_at",
        sort_order: order,
        select: ["thread_id", "state_updated_at", "metadata"],
        extract: FIRST_MESSAGE,
      }),
    getNextPageParam: ({ cursor }) => cursor,
    select: threadsOf,
    // Reading several pages again takes long.
    refetchInterval: (query) =>
      refetchEvery((query.state.data?.pages.length ?? 0) > 1 ? false : POLL_MS)(query),
  });
};

/** Removes an answered thread before the server lists it no more. */
export const dropFromList = async (queries: QueryClient, threadId: string): Promise<void> => {
  await queries.cancelQueries({ queryKey: LIST_KEY });
  queries.setQueriesData<InfiniteData<SearchPage<WaitingThread>>>(
    { queryKey: LIST_KEY },
    (known) =>
      known && {
        ...known,
        pages: known.pages.map((page) => ({
          ...page,
          items: page.items.filter(({ thread_id }) => thread_id !== threadId),
        })),
      },
  );
};

const textIn = (metadata: WaitingThread["metadata"], key: string): string | undefined => {
  const text = metadata?.[key];
  return typeof text === "string" && text.trim() !== "" ? text : undefined;
};

export const graphOf = ({ metadata }: Pick<WaitingThread, "metadata">): string | undefined =>
  textIn(metadata, "graph_id");

export const assigneeOf = ({ metadata }: Pick<WaitingThread, "metadata">): string | undefined =>
  textIn(metadata, "assignee");
