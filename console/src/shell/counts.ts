import { useMemo } from "react";
import { useWaitingCount } from "../parts/waiting-threads.ts";

/** Numbers beside the names of pages, by path. */
export const useCounts = (): ReadonlyMap<string, number> => {
  const waiting = useWaitingCount();
  return useMemo(() => new Map(waiting === undefined ? [] : [["/inbox/:threadId?", waiting]]), [waiting]);
};
