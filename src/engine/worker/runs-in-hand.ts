import type { ClaimedRunRow } from "../../platform/database/tables.ts";
import type { Faults } from "../../platform/domain/faults.ts";
import type { Execution, Executor } from "../attempt/execution.ts";
import type { Endings } from "../endings.ts";
import type { Heartbeat } from "../lease/heartbeat.ts";
import type { WaitersElsewhere } from "./waiters-elsewhere.ts";
import type { Suspects } from "./suspects.ts";

export interface RunsInHandParts {
  /** Runs at a time; 0 for a process that only answers requests. */
  concurrency: number;
  executor: Executor;
  heartbeat: Pick<Heartbeat, "begun" | "ended">;
  endings: Pick<Endings, "publish">;
  suspects: Pick<Suspects, "begun" | "released" | "isAlone" | "hasOwnPlace" | "inOwnPlaces">;
  waitersElsewhere: Pick<WaitersElsewhere, "left" | "endedUnnoticed">;
  faults: Faults;
  /** A run gave its slot up, though its outcome is still to be stored. */
  onGraphEnded(): void;
  /** A run has left this process. `mayBeMore`: one that it kept from beginning may begin now. */
  onReleased(mayBeMore: boolean): void;
}

/** Attempts that are remembered after they have left: more than leave within a lease. About 1 MB. */
const REMEMBERED_AT_MOST = 10_000;

const attemptOf = ({ run_id, attempt }: ClaimedRunRow): string => `${run_id}/${attempt}`;

/** The runs that this process executes, and the slots that they leave. */
export const createRunsInHand = (parts: RunsInHandParts) => {
  const { concurrency, executor, heartbeat, endings, suspects, waitersElsewhere, faults } = parts;
  const executions = new Map<string, Execution>();
  /**
   * Attempts that have begun here, those that left last at the end. The table may say for a while that this process holds
   * one that has left: its outcome could not be stored, or an answer was late. Nothing executes an attempt twice.
   */
  const begun = new Set<string>();
  const remember = (run: ClaimedRunRow): void => {
    begun.delete(attemptOf(run));
    begun.add(attemptOf(run));
    if (begun.size <= REMEMBERED_AT_MOST) return;
    for (const oldest of begun) {
      begun.delete(oldest);
      break;
    }
  };
  /** Slots held for runs that are being claimed. */
  let reserved = 0;
  /**
   * Executions whose graph has ended and whose last checkpoints and outcome are being stored. They hold no slot: the
   * next run is claimed meanwhile, else every slot would stand idle for three statements between two runs. But not more
   * than there are slots, so that a slow database doesn't fill the memory with them. A suspect in a place of its own
   * had no slot to give up.
   */
  let concluding = 0;

  return {
    /** Below 1: none. */
    get freeSlots(): number {
      if (suspects.isAlone) return 0;
      const sharing = executions.size - suspects.inOwnPlaces;
      return concurrency - (sharing - Math.min(concluding, concurrency)) - reserved;
    },
    /** Whether nothing is executed here, nor about to be. */
    get isIdle(): boolean {
      return executions.size === 0 && reserved === 0;
    },
    get size(): number {
      return executions.size;
    },
    /** Those that have been here longest first. */
    get runIds(): string[] {
      return [...executions.keys()];
    },
    get: (runId: string): Execution | undefined => executions.get(runId),
    has: (runId: string): boolean => executions.has(runId),
    /** Whether this attempt has been begun here, and may have left: it must not be begun again. */
    hasBegun: (run: ClaimedRunRow): boolean => begun.has(attemptOf(run)),
    /** A copy: runs begin and end while it is gone through. */
    all: (): Execution[] => [...executions.values()],
    reserve(slots: number): void {
      reserved += slots;
    },
    release(slots: number): void {
      reserved -= slots;
    },
    /** Executes a run that was claimed. `creatorIsHere`: it was created by this process and started with that. */
    begin(run: ClaimedRunRow, creatorIsHere: boolean): Execution {
      faults.reached("after-claim");
      remember(run);
      const slots = suspects.hasOwnPlace(run) ? 0 : 1;
      const execution = executor.execute(run, creatorIsHere, {
        onGraphEnded() {
          concluding += slots;
          parts.onGraphEnded();
        },
        onReleased(ending) {
          concluding -= slots;
          remember(run);
          // This process may hold the run again by now, in a later attempt.
          const isNewest = executions.get(run.run_id) === execution;
          if (isNewest) executions.delete(run.run_id);
          heartbeat.ended(execution);
          if (isNewest) suspects.released(run.run_id);
          const isAwaited = isNewest && waitersElsewhere.left(run.run_id);
          if (ending !== undefined) {
            const isAwaitedElsewhere = isAwaited || !creatorIsHere || run.resumable;
            endings.publish(
              { run, status: ending.status, error: ending.error },
              { ending, isAwaitedElsewhere },
            );
            if (!isAwaitedElsewhere) waitersElsewhere.endedUnnoticed(run.run_id);
          }
          parts.onReleased(ending === undefined || ending.othersWait);
        },
      });
      executions.set(run.run_id, execution);
      heartbeat.begun(execution);
      suspects.begun(run);
      return execution;
    },
  };
};

export type RunsInHand = ReturnType<typeof createRunsInHand>;
