import type { RunRow } from "../../platform/database/tables.ts";

/**
 * A suspect is in its last attempt and may have killed its servers or graph processes. A process executes one suspect
 * at a time, begins it when idle, and begins nothing else for a while; with graph processes, each suspect gets its own
 * process at once. Times are fractions of a lease.
 */
const REST_LEASES = 0.5;
const ALONE_LEASES = 0.5;
/** After this time a suspect begins on a busy server, too. */
const PATIENCE_LEASES = 6;

interface SuspectsOptions {
  isSuspect(run: Pick<RunRow, "lost_attempts">): boolean;
  leaseSeconds: number;
  atOnce: number;
  onJoinable(): void;
}

export const createSuspects = ({ isSuspect, leaseSeconds, atOnce, onJoinable }: SuspectsOptions) => {
  const sharesProcess = atOnce === 0;
  /** Without graph processes one; a second one only if the response to a claim was lost. */
  const here = new Set<string>();
  let alone: NodeJS.Timeout | undefined;

  const endAlone = (): void => {
    clearTimeout(alone);
    alone = undefined;
  };

  return {
    get isFull(): boolean {
      return here.size >= Math.max(1, atOnce);
    },
    hasOwnPlaces: !sharesProcess,
    hasOwnPlace: (run: RunRow): boolean => !sharesProcess && isSuspect(run),
    get inOwnPlaces(): number {
      return sharesProcess ? 0 : here.size;
    },
    get isAlone(): boolean {
      return alone !== undefined;
    },
    /** Seconds after a suspect lost its process until an idle or a busy process may take it. */
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
