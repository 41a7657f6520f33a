import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useEffectEvent, useState } from "react";
import { LISTED_FIELDS, type Run } from "../parts/run.ts";
import { useConnection, type Connection, type SearchPage } from "../server/connection.tsx";
import { refetchEvery } from "../server/refetch.ts";
import { bodyOf, type RunFilter } from "./run-filter.ts";

export const PAGE = 50;
export const SHOWN_AT_MOST = 500;
const SHORT_LIST_POLL_MS = 2_000;
/** A longer list takes longer to read. */
const LONG_LIST_POLL_MS = 10_000;

/** The API ends a page early if errors are long. */
const readRuns = async (
  { search }: Pick<Connection, "search">,
  filter: RunFilter,
  limit: number,
): Promise<SearchPage<Run>> => {
  const read: Run[] = [];
  let total: number | undefined;
  for (let cursor: string | undefined; ;) {
    const page = await search<Run>("/runs/search", {
      ...bodyOf(filter),
      limit: limit - read.length,
      cursor,
      select: LISTED_FIELDS,
    });
    // Only the first page has the total.
    total ??= page.total;
    read.push(...page.items);
    ({ cursor } = page);
    if (cursor === undefined || read.length >= limit) return { ...page, total, items: read };
  }
};

export const useLiveRuns = (filter: RunFilter, { limit, isPaused }: { limit: number; isPaused: boolean }) => {
  const { search } = useConnection();
  return useQuery({
    queryKey: ["runs", "list", filter, limit],
    queryFn: () => readRuns({ search }, filter, limit),
    placeholderData: keepPreviousData,
    refetchInterval: isPaused ? false : refetchEvery(limit > PAGE ? LONG_LIST_POLL_MS : SHORT_LIST_POLL_MS),
  });
};

/** `waiting`: the number of hidden new runs. */
interface Shown {
  runs: readonly Run[];
  waiting: number;
}

/** Drops deleted runs and keeps those that new runs pushed off the page. */
const updateShown = (shown: readonly Run[], { items: found, hasMore }: SearchPage<Run>): Shown => {
  const newest = shown[0];
  if (newest === undefined) return { runs: found, waiting: 0 };
  const last = hasMore ? found.at(-1) : undefined;
  const now = new Map(found.map((run) => [run.run_id, run]));
  return {
    runs: shown.flatMap((run) => {
      const current = now.get(run.run_id);
      if (current !== undefined) return [current];
      return last !== undefined && run.run_id < last.run_id ? [run] : [];
    }),
    waiting: found.filter((run) => run.run_id > newest.run_id).length,
  };
};

/**
 * Hides new runs while the user reads the list. Ids rise with time.
 * @param key identifies the list; another list is shown at once
 * @param isPrevious `found` belongs to the previous list
 */
export const useStableRuns = (
  found: SearchPage<Run> | undefined,
  { key, isPrevious, isRead }: { key: string; isPrevious: boolean; isRead(): boolean },
): Shown & { showAll(): void } => {
  const [{ shown, of }, setShown] = useState<{ shown: Shown; of: string }>({
    shown: { runs: [], waiting: 0 },
    of: "",
  });
  const isReadNow = useEffectEvent(isRead);
  useEffect(() => {
    if (found === undefined || isPrevious) return;
    const keepsList = isReadNow();
    // Only the rendered document knows whether the user reads the list.
    // eslint-disable-next-line react-hooks/set-state-in-effect
    setShown((before) =>
      before.of === key && keepsList
        ? { shown: updateShown(before.shown.runs, found), of: key }
        : { shown: { runs: found.items, waiting: 0 }, of: key },
    );
  }, [found, key, isPrevious]);
  return {
    ...(of === key ? shown : { runs: found?.items ?? [], waiting: 0 }),
    showAll: () => setShown({ shown: { runs: found?.items ?? [], waiting: 0 }, of: key }),
  };
};
