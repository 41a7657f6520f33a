/** Serializes work per key, within this process. */
export interface KeyedMutex {
  /** Waits for all earlier work of the key, even if it failed. */
  take<Result>(key: string, work: () => Promise<Result>): Promise<Result>;
}

export const createKeyedMutex = (): KeyedMutex => {
  const last = new Map<string, Promise<unknown>>();
  return {
    async take(key, work) {
      const turn = (last.get(key) ?? Promise.resolve()).then(work);
      const over = turn.catch(() => undefined);
      last.set(key, over);
      try {
        return await turn;
      } finally {
        if (last.get(key) === over) last.delete(key);
      }
    },
  };
};
