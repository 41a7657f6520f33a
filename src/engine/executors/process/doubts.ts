import { idsOf, type Member } from "./member.ts";

/** Runs may be taken by another server, which does not know of the doubt. */
const DOUBTED_AT_MOST = 1_000;

/**
 * Runs that had begun last in a process that died, which makes them likelier than their neighbours to have ended it: a run
 * that does so is at once at that point again when it goes on. They go on alone, before they are in their last attempt.
 */
export const createDoubts = () => {
  const doubted = new Set<string>();
  return {
    died(member: Member): void {
      const newest = idsOf(member).at(-1);
      if (newest === undefined || member.here.size < 2) return;
      const [oldest] = doubted;
      if (oldest !== undefined && doubted.size >= DOUBTED_AT_MOST) doubted.delete(oldest);
      doubted.add(newest);
    },
    /** Whether the run is doubted; once. */
    take: (runId: string): boolean => doubted.delete(runId),
  };
};
