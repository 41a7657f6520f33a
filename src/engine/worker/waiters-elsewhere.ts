import type { Signals } from "../../platform/database/signals.ts";

interface AskedFor {
  threadId: string;
  runId: string;
}

/**
 * Tracks which runs other processes wait for. A signal at the end of every run would cost each process a
 * statement per 10 ms, for waiters that are rare.
 */
export const createWaitersElsewhere = (signals: Pick<Signals, "send">) => {
  /** Runs here that another process waits for. */
  const awaited = new Set<string>();
  /**
   * Runs that ended without a signal in the current and the previous second: another process may still ask
   * for them.
   */
  let justEnded: readonly [Set<string>, Set<string>] = [new Set(), new Set()];
  return {
    asked({ threadId, runId }: AskedFor, isHere: boolean): void {
      if (isHere) awaited.add(runId);
      else if (justEnded.some((ended) => ended.has(runId))) signals.send({ kind: "ended", threadId, runId });
    },
    /** Returns whether another process had asked for the run. */
    left: (runId: string): boolean => awaited.delete(runId),
    endedUnnoticed: (runId: string): void => void justEnded[0].add(runId),
    /** Called each second. */
    tick(): void {
      justEnded = [new Set(), justEnded[0]];
    },
  };
};

export type WaitersElsewhere = ReturnType<typeof createWaitersElsewhere>;
