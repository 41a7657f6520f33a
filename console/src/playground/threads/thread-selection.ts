import { useState } from "react";
import type { ListedThread } from "./listed-threads.ts";

const NO_THREADS: ReadonlyMap<string, ListedThread> = new Map();

/** The marked threads. A click with Shift marks all up to the thread that was clicked before. */
export const useThreadSelection = (shown: readonly ListedThread[]) => {
  const [selected, setSelected] = useState<ReadonlyMap<string, ListedThread>>(NO_THREADS);
  const [lastId, setLastId] = useState<string>();
  const positionOf = (id: string | undefined): number => shown.findIndex(({ thread_id }) => thread_id === id);
  const select = (thread: ListedThread, isSelected: boolean, withShift: boolean): void => {
    const [one, other] = [positionOf(lastId), positionOf(thread.thread_id)];
    const isRange = withShift && one >= 0 && other >= 0;
    const range = isRange ? shown.slice(Math.min(one, other), Math.max(one, other) + 1) : [thread];
    const next = new Map(selected);
    for (const each of range)
      if (isSelected) next.set(each.thread_id, each);
      else next.delete(each.thread_id);
    setLastId(thread.thread_id);
    setSelected(next);
  };
  return { selected, select, clear: () => setSelected(NO_THREADS) };
};
