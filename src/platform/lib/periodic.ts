import { createBackOff } from "./back-off.ts";

interface PeriodicOptions {
  everyMs: number;
  work: () => Promise<unknown>;
  onError: (error: unknown) => void;
}

/** Much longer than the work, so that a lasting fault puts no load on the database. */
const RETRY_LONGEST_MS = 60_000;

/** Never runs `work` twice at a time. Retries failed work sooner: daily work must not wait a day after a deadlock. */
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
