export interface PeriodicOptions {
  everyMs: number;
  work: () => Promise<unknown>;
  onError: (error: unknown) => void;
}

/** Work that is repeated until it is closed, never twice at a time. Closing waits for the work in progress. */
export const startPeriodic = ({ everyMs, work, onError }: PeriodicOptions): { close(): Promise<void> } => {
  let working: Promise<unknown> | undefined;
  const timer = setInterval(() => {
    working ??= work()
      .catch(onError)
      .finally(() => {
        working = undefined;
      });
  }, everyMs);
  return {
    async close() {
      clearInterval(timer);
      await working;
    },
  };
};
