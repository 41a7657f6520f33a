import type { DeathReason } from "./deaths.ts";
import type { RemoteExecution } from "./remote-execution.ts";
import { idsOf, type Member } from "./member.ts";

/** Runs may be taken by another server, which does not know of the doubt. */
const REMEMBERED_AT_MOST = 1_000;
/**
 * How often a run loses no attempt because another one was named. Code that runs for two runs, say the callback of a
 * connection that they share, may name the wrong one of them, each time another: so nobody is cleared for ever.
 */
const CLEARED_AT_MOST = 5;

const forgetOldest = (runs: Map<string, number> | Set<string>): void => {
  const [oldest] = runs.keys();
  if (oldest !== undefined && runs.size >= REMEMBERED_AT_MOST) runs.delete(oldest);
};

/**
 * Runs that are likelier than their neighbours to have ended their process: the one that it named while it ended, else the
 * one that had begun last, since a run that does so is at once at that point again when it goes on. They go on alone, before
 * they are in their last attempt.
 */
export const createHealthTracker = () => {
  const suspected = new Set<string>();
  /** How often each has been cleared. */
  const cleared = new Map<string, number>();

  const suspect = (member: Member, reason: DeathReason): string | undefined => {
    const { culprit, here } = member;
    if (culprit !== undefined) return here.get(culprit.id)?.run.run_id;
    // A signal may come from outside, so it says nothing of a run that was alone. A full heap does.
    return here.size < 2 && reason !== "memory" ? undefined : idsOf(member).at(-1);
  };

  return {
    died(member: Member, reason: DeathReason): void {
      const runId = suspect(member, reason);
      if (runId === undefined) return;
      forgetOldest(suspected);
      suspected.add(runId);
    },
    /** Whether the run is doubted; once. */
    take: (runId: string): boolean => suspected.delete(runId),

    /**
     * Whether the run loses no attempt by the end of its process. The process has named another run: one that is there, or one
     * that is over and has left a timer behind. Or memory was the reason, and nothing names the run that held it: it fills a
     * process again that it has for itself, and pays then. To be asked once for each of its executions.
     * @param neighbours executions that were there beside this one
     */
    clears(
      { culprit }: Member,
      { id, run }: RemoteExecution,
      { reason, neighbours }: { reason: DeathReason; neighbours: number },
    ): boolean {
      const isAnothers = culprit === undefined ? reason === "memory" && neighbours > 0 : culprit.id !== id;
      if (!isAnothers) return false;
      const times = (cleared.get(run.run_id) ?? 0) + 1;
      cleared.delete(run.run_id);
      forgetOldest(cleared);
      cleared.set(run.run_id, times);
      return times <= CLEARED_AT_MOST;
    },
  };
};
