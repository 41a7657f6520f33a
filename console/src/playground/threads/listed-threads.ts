import { useInfiniteQuery, useQuery, type InfiniteData } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { refetchEvery } from "../../server/refetch.ts";
import { useConnection, type SearchPage } from "../../server/connection.tsx";
import { FIRST_MESSAGE, type NamedThread } from "../../parts/thread-name.ts";
import type { ThreadSearch } from "./thread-search.ts";

export interface ListedThread extends NamedThread {
  status: string;
  updated_at: string;
}

const PAGE = 50;
/** Larger, because a user who scrolls wants many threads, and because most threads do not match a search. */
const LATER_PAGE = 200;
const SEARCHED_AT_ONCE = 1_000;
const POLL_MS = 4_000;

/**
 * Each thread once, newest first. Pages that were read before may contain threads that were deleted or no longer
 * match: as far as the newest page reaches, only that counts.
 */
const merge = (
  newest: SearchPage<ListedThread> | undefined,
  before: InfiniteData<SearchPage<ListedThread>> | undefined,
): ListedThread[] => {
  const pages = before?.pages.flatMap(({ items }) => items) ?? [];
  if (newest === undefined) return pages;
  const oldest = newest.items.at(-1)?.updated_at;
  const threads = new Map(newest.items.map((thread) => [thread.thread_id, thread]));
  if (newest.hasMore && oldest !== undefined)
    for (const thread of pages)
      if (thread.updated_at <= oldest && !threads.has(thread.thread_id))
        threads.set(thread.thread_id, thread);
  return [...threads.values()];
};

/** Whether threads between the newest page and the pages before it are unknown. */
const hasGap = (
  newest: SearchPage<ListedThread> | undefined,
  before: InfiniteData<SearchPage<ListedThread>> | undefined,
): boolean => {
  if (newest === undefined || !newest.hasMore || before === undefined) return false;
  const ids = new Set(before.pages[0]?.items.map(({ thread_id }) => thread_id));
  return !newest.items.some(({ thread_id }) => ids.has(thread_id));
};

/** Newest first, live. A text search reads pages up to a bound, which `more` raises. */
export const useListedThreads = ({ ids, metadata, status, words }: ThreadSearch) => {
  const { search } = useConnection();
  const isSearching = words !== undefined;
  const [bound, setBound] = useState(SEARCHED_AT_ONCE);
  const read = (cursor: string | undefined, limit: number): Promise<SearchPage<ListedThread>> =>
    search<ListedThread>("/threads/search", {
      limit,
      cursor,
      sort_by: "updated_at",
      sort_order: "desc",
      select: ["thread_id", "status", "updated_at", "metadata"],
      extract: FIRST_MESSAGE,
      ids,
      metadata,
      status,
    });
  const threads = useInfiniteQuery({
    queryKey: ["threads", "pages", ids, metadata, status, isSearching],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) => read(pageParam, isSearching || pageParam !== undefined ? LATER_PAGE : PAGE),
    getNextPageParam: ({ cursor }) => cursor,
    staleTime: Infinity,
    // A list of thousands is not read again: the newest page brings what changes.
    refetchOnMount: (query) => (query.state.data?.pages.length ?? 0) < 2,
    refetchOnWindowFocus: false,
  });
  const newest = useQuery({
    queryKey: ["threads", "list", ids, metadata, status],
    queryFn: () => read(undefined, PAGE),
    enabled: !isSearching && threads.isSuccess,
    refetchInterval: refetchEvery(POLL_MS),
  });
  const loaded = useMemo(
    () => merge(isSearching ? undefined : newest.data, threads.data),
    [isSearching, newest.data, threads.data],
  );
  const { hasNextPage, isFetching, isError, fetchNextPage, refetch } = threads;
  const isOutdated = !isSearching && !isFetching && hasGap(newest.data, threads.data);
  useEffect(() => {
    if (isOutdated) void refetch();
  }, [isOutdated, refetch]);
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
    error: threads.error ?? newest.error,
    retry: () => void refetch(),
    hasMore: hasNextPage && !isShort,
    isFetchingMore: threads.isFetchingNextPage,
    more: (): void => {
      if (isSearching) setBound(loaded.length + SEARCHED_AT_ONCE);
      else if (!isFetching) void fetchNextPage();
    },
  };
};
