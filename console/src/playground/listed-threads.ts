import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { refetchEvery } from "../server/queries.ts";
import { useConnection } from "../server/connection.tsx";
import { FIRST_MESSAGE } from "./thread-record.ts";
import type { ThreadSearch } from "./thread-search.ts";

export interface ListedThread {
  thread_id: string;
  status: string;
  updated_at: string;
  metadata: Record<string, unknown> | null;
  extracted?: { first?: unknown };
}

const PAGE = 30;
/** Most threads do not match. */
const SEARCHED_PAGE = 200;
const SEARCHED_AT_ONCE = 1_000;
const POLL_MS = 4_000;

/** Newest first. A text search reads pages up to a bound, which `more` raises. */
export const useListedThreads = ({ ids, metadata, status, words }: ThreadSearch) => {
  const { search } = useConnection();
  const isSearching = words !== undefined;
  const [bound, setBound] = useState(SEARCHED_AT_ONCE);
  const threads = useInfiniteQuery({
    queryKey: ["threads", "list", ids, metadata, status, isSearching],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) =>
      search<ListedThread>("/threads/search", {
        limit: isSearching ? SEARCHED_PAGE : PAGE,
        cursor: pageParam,
        sort_by: "updated_at",
        sort_order: "desc",
        select: ["thread_id", "status", "updated_at", "metadata"],
        extract: FIRST_MESSAGE,
        ids,
        metadata,
        status,
      }),
    getNextPageParam: ({ cursor }) => cursor,
    refetchInterval: (query) =>
      refetchEvery(isSearching || (query.state.data?.pages.length ?? 0) > 1 ? false : POLL_MS)(query),
  });
  const loaded = threads.data?.pages.flatMap(({ items }) => items) ?? [];
  const { hasNextPage, isFetching, isError, fetchNextPage } = threads;
  const isShort = isSearching && hasNextPage && loaded.length < bound;
  useEffect(() => {
    if (isShort && !isFetching && !isError) void fetchNextPage();
  }, [isShort, isFetching, isError, fetchNextPage]);
  if (!isSearching && bound !== SEARCHED_AT_ONCE) setBound(SEARCHED_AT_ONCE);
  return {
    loaded,
    /** Undefined if the server does not count. */
    total: threads.data?.pages[0]?.total,
    isPending: threads.isPending,
    isSearching: isSearching && isFetching,
    error: threads.error,
    hasMore: hasNextPage && !isShort,
    isFetchingMore: threads.isFetchingNextPage,
    more: (): void => {
      if (isSearching) setBound(loaded.length + SEARCHED_AT_ONCE);
      else void fetchNextPage();
    },
  };
};
