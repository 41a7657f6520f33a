import type { RunRow } from "../../platform/database/tables.ts";

/**
 * A run in its last attempt, after its workers were lost, may be what killed them: by its memory, an endless loop, an
 * exit. So a process takes one of these at a time, when it does nothing else, and lets nothing else begin beside it
 * until it has lived for a while. Where graphs have processes of their own, a suspect gets one for itself, at once.
 * Times are in parts of a lease, which is how long this server takes to be sure of a death: 5 s and 60 s by default.
 */
const REST_LEASES = 0.5;
const ALONE_LEASES = 0.5;
/** On a server that is never idle a suspect begins all the same, after this time. */
const PATIENCE_LEASES = 6;

export interface SuspectsOptions {
  isSuspect(run: Pick<RunRow, "lost_attempts">): boolean;
  leaseSeconds: number;
  /** Those that may be executed at once, each in a process of its own; 0: in this one. See GraphExecutor. */
  atOnce: number;
  /** Others may begin again. */
  onJoinable(): void;
}

/** The suspects that this process executes: nearly always none. */
export const createSuspects = ({ isSuspect, leaseSeconds, atOnce, onJoinable }: SuspectsOptions) => {
  const sharesProcess = atOnce === 0;
  /** One; two only where the answer to a claim was lost and its run is found again beside another. */
  const here = new Set<string>();
  let alone: NodeJS.Timeout | undefined;

  const endAlone = (): void => {
    clearTimeout(alone);
    alone = undefined;
  };

  return {
    /** Whether as many as may be are executed here. */
    get isFull(): boolean {
      return here.size >= Math.max(1, atOnce);
    },
    /** Whether they take none of the slots in which runs share a process. */
    hasOwnPlaces: !sharesProcess,
    /** Whether a run takes none of them. */
    hasOwnPlace: (run: RunRow): boolean => !sharesProcess && isSuspect(run),
    /** How many of those that are executed here take none. */
    get inOwnPlaces(): number {
      return sharesProcess ? 0 : here.size;
    },
    /** Whether nothing else may begin here now. */
    get isAlone(): boolean {
      return alone !== undefined;
    },
    /** Seconds that a suspect must have waited since it lost its worker, to be taken by a process that is idle or not. */
    restSeconds: (isIdle: boolean): number =>
      sharesProcess ? (isIdle ? REST_LEASES : PATIENCE_LEASES) * leaseSeconds : 0,
    begun(run: RunRow): void {
      if (!isSuspect(run)) return;
      here.add(run.run_id);
      if (!sharesProcess) return;
      clearTimeout(alone);
      alone = setTimeout(
        () => {
          endAlone();
          onJoinable();
        },
        ALONE_LEASES * leaseSeconds * 1_000,
      );
    },
    released(releasedId: string): void {
      if (!here.delete(releasedId) || here.size > 0) return;
      const wasAlone = alone !== undefined;
      endAlone();
      if (wasAlone) onJoinable();
    },
  };
};

export type Suspects = ReturnType<typeof createSuspects>;
