export const createRunWatchers = () => {
  const watchers = new Map<string, Set<() => void>>();
  /** Watched runs whose events can't be logged; forgotten with the last watcher. */
  const hopeless = new Set<string>();
  const notify = (runId: string): void => {
    for (const wake of watchers.get(runId) ?? []) wake();
  };
  return {
    watch(runId: string, wake: () => void): () => void {
      const wakers = watchers.get(runId) ?? new Set();
      wakers.add(wake);
      watchers.set(runId, wakers);
      return () => {
        wakers.delete(wake);
        if (wakers.size > 0) return;
        watchers.delete(runId);
        hopeless.delete(runId);
      };
    },
    isWatched: (runId: string): boolean => watchers.has(runId),
    notify,
    giveUp(runId: string): void {
      if (watchers.has(runId)) hopeless.add(runId);
      notify(runId);
    },
    isHopeless: (runId: string): boolean => hopeless.has(runId),
    notifyAll(): void {
      for (const runId of [...watchers.keys()]) notify(runId);
    },
  };
};

export type RunWatchers = ReturnType<typeof createRunWatchers>;
