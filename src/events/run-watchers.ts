/** Who in this process waits for news of which run. */
export const createRunWatchers = () => {
  const watchers = new Map<string, Set<() => void>>();
  const notify = (runId: string): void => {
    for (const wake of watchers.get(runId) ?? []) wake();
  };
  return {
    /** Returns the end of the waiting. */
    watch(runId: string, wake: () => void): () => void {
      const wakers = watchers.get(runId) ?? new Set();
      wakers.add(wake);
      watchers.set(runId, wakers);
      return () => {
        wakers.delete(wake);
        if (wakers.size === 0) watchers.delete(runId);
      };
    },
    isWatched: (runId: string): boolean => watchers.has(runId),
    notify,
    notifyAll(): void {
      for (const runId of [...watchers.keys()]) notify(runId);
    },
  };
};
