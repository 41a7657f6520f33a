import type { Signals } from "../../platform/database/signals.ts";
import type { RunSelector } from "../queue/attempts.ts";

/**
 * Signals only awaited runs: a signal at the end of every run would cost each process a statement per 10 ms.
 */
export const createWaitersElsewhere = (signals: Pick<Signals, "send">) => {
  const awaited = new Set<string>();
  /** Runs that ended in the current and the previous second: another process may still ask for them. */
  let justEnded: readonly [Set<string>, Set<string>] = [new Set(), new Set()];
  return {
    asked({ threadId, runId }: RunSelector, isHere: boolean): void {
      if (isHere) awaited.add(runId);
      else if (justEnded.some((ended) => ended.has(runId))) signals.send({ kind: "ended", threadId, runId });
    },
    left: (runId: string): boolean => awaited.delete(runId),
    endedUnnoticed: (runId: string): void => void justEnded[0].add(runId),
    tick(): void {
      justEnded = [new Set(), justEnded[0]];
    },
  };
};

export type WaitersElsewhere = ReturnType<typeof createWaitersElsewhere>;
