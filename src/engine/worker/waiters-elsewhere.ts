import type { Signals } from "../../platform/database/signals.ts";

/** A run and its thread, as a signal names them. */
interface AskedFor {
  threadId: string;
  runId: string;
}

/**
 * What other processes want to hear of the runs here: a signal at the end of every run would cost each of several
 * processes a statement per 10 ms, for waiters that are rarely there.
 */
export const createWaitersElsewhere = (signals: Pick<Signals, "send">) => {
  /** Runs here whose end, or whose events, somebody on another process waits for. */
  const awaited = new Set<string>();
  /** Runs that ended here in this second and in the one before: who asks for them had not heard of it. */
  let justEnded: readonly [Set<string>, Set<string>] = [new Set(), new Set()];
  return {
    /** Another process asks for a run. */
    asked({ threadId, runId }: AskedFor, isHere: boolean): void {
      if (isHere) awaited.add(runId);
      else if (justEnded.some((ended) => ended.has(runId))) signals.send({ kind: "ended", threadId, runId });
    },
    /** The run has left this process; answers whether another one had asked for it. */
    left: (runId: string): boolean => awaited.delete(runId),
    /** The run ended without a signal. */
    endedUnnoticed: (runId: string): void => void justEnded[0].add(runId),
    /** A second has passed. */
    tick(): void {
      justEnded = [new Set(), justEnded[0]];
    },
  };
};

export type WaitersElsewhere = ReturnType<typeof createWaitersElsewhere>;
