import type { Signals } from "../database/signals.ts";
import type { RunEnding } from "./attempt/execution.ts";

/** A wait for the end of one run. */
export interface EndingWait {
  /**
   * The ending with all its particulars if the run ended in this process; `"elsewhere"` if another one said that
   * it ended; `"silence"` after a while without news: look into the database then.
   */
  readonly news: Promise<RunEnding | "elsewhere" | "silence">;
  cancel(): void;
}

/** A waiter looks by itself this often, should a signal have been lost. */
const POLL_MS = 1_000;

/** Tells those who wait for a run that it has ended, at once where it is this process that ended it. */
export const createEndings = (signals: Signals) => {
  const waits = new Map<string, Set<(news: RunEnding | "elsewhere") => void>>();
  const settle = (runId: string, news: RunEnding | "elsewhere"): void => {
    const waiting = waits.get(runId);
    waits.delete(runId);
    for (const resolve of waiting ?? []) resolve(news);
  };
  const unsubscribe = signals.subscribe(({ kind, runId }) => {
    if (kind === "ended") settle(runId, "elsewhere");
  });

  return {
    settle: (runId: string, ending: RunEnding): void => settle(runId, ending),

    wait(runId: string): EndingWait {
      let cancel = (): void => undefined;
      const news = new Promise<RunEnding | "elsewhere" | "silence">((resolve) => {
        const timer = setTimeout(() => {
          cancel();
          resolve("silence");
        }, POLL_MS);
        const listener = (heard: RunEnding | "elsewhere"): void => {
          clearTimeout(timer);
          resolve(heard);
        };
        const listeners = waits.get(runId) ?? new Set();
        listeners.add(listener);
        waits.set(runId, listeners);
        cancel = () => {
          clearTimeout(timer);
          listeners.delete(listener);
          if (listeners.size === 0 && waits.get(runId) === listeners) waits.delete(runId);
        };
      });
      return { news, cancel: () => cancel() };
    },

    close(): void {
      unsubscribe();
    },
  };
};

export type Endings = ReturnType<typeof createEndings>;
