import { LRUCache } from "lru-cache";
import type { DeathReason } from "./deaths.ts";
import type { RemoteExecution } from "./remote-execution.ts";
import { idsOf, type Member } from "./member.ts";

/** Unused entries remain when a run continues on another server. */
const REMEMBERED_AT_MOST = 1_000;
/** Code that two runs share, such as a connection's callback, may blame the wrong run each time. */
const CLEARED_AT_MOST = 5;

/**
 * Suspects the run in the exit report, else the run that began last: a guilty run reaches the same point soon
 * after its restart. The suspect then runs alone, even before its last attempt.
 */
export const createHealthTracker = () => {
  const suspected = new LRUCache<string, true>({ max: REMEMBERED_AT_MOST });
  const cleared = new LRUCache<string, number>({ max: REMEMBERED_AT_MOST });

  const suspect = (member: Member, reason: DeathReason): string | undefined => {
    const { culprit, here } = member;
    if (culprit !== undefined) return here.get(culprit.id)?.run.run_id;
    // A signal may come from outside, so it proves nothing about a single run; a full heap does.
    return here.size < 2 && reason !== "memory" ? undefined : idsOf(member).at(-1);
  };

  return {
    died(member: Member, reason: DeathReason): void {
      const runId = suspect(member, reason);
      if (runId !== undefined) suspected.set(runId, true);
    },
    /** Whether the run is suspected; clears the suspicion. */
    take: (runId: string): boolean => suspected.delete(runId),

    /**
     * Whether the run keeps its attempt: another run was blamed, or the memory was full beside other runs.
     * Call once per execution.
     */
    clears(
      { culprit }: Member,
      { id, run }: RemoteExecution,
      { reason, neighbours }: { reason: DeathReason; neighbours: number },
    ): boolean {
      const isAnothers = culprit === undefined ? reason === "memory" && neighbours > 0 : culprit.id !== id;
      if (!isAnothers) return false;
      const times = (cleared.get(run.run_id) ?? 0) + 1;
      cleared.set(run.run_id, times);
      return times <= CLEARED_AT_MOST;
    },
  };
};
