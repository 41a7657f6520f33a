import { createBackOff } from "./back-off.ts";

export interface PeriodicOptions {
  everyMs: number;
  work: () => Promise<unknown>;
  onError: (error: unknown) => void;
}

/** Much more than the work takes, so that a fault that stays is not felt by those who wait for the same database. */
const RETRY_LONGEST_MS = 60_000;

/**
 * Work that is repeated until it is closed, never twice at a time. Work that failed is tried again sooner than it is
 * due, with growing pauses: what comes once a day must not be left out for a deadlock. Closing waits for the work in
 * progress.
 */
export const startPeriodic = ({ everyMs, work, onError }: PeriodicOptions): { close(): Promise<void> } => {
  const backOff = createBackOff({ firstMs: everyMs / 4, longestMs: Math.min(everyMs, RETRY_LONGEST_MS) });
  let working: Promise<unknown> | undefined;
  let closed = false;
  let retry: NodeJS.Timeout | undefined;
  const run = (): void => {
    clearTimeout(retry);
    working ??= work()
      .then(
        () => backOff.reset(),
        (error: unknown) => {
          onError(error);
          if (!closed) retry = setTimeout(run, backOff.next());
        },
      )
      .finally(() => {
        working = undefined;
      });
  };
  const timer = setInterval(run, everyMs);
  return {
    async close() {
      closed = true;
      clearInterval(timer);
      clearTimeout(retry);
      await working;
    },
  };
};
