import type { ClaimedRunRow } from "../../platform/database/tables.ts";
import { isPassing } from "../../platform/database/passing-faults.ts";
import { createBackOff } from "../../platform/lib/back-off.ts";
import { sqlState, UNIQUE_VIOLATION } from "../../platform/domain/errors.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { Queue } from "../queue/queue.ts";
import type { Adoption } from "./adoption.ts";
import type { RunsInHand } from "./runs-in-hand.ts";
import type { Suspects } from "./suspects.ts";

export interface ClaimsParts {
  queue: Pick<Queue, "claim" | "claimSuspect" | "claimedAtOnce">;
  inHand: Pick<RunsInHand, "freeSlots" | "isIdle" | "reserve" | "release" | "hasBegun" | "begin">;
  suspects: Pick<Suspects, "isFull" | "hasOwnPlaces" | "restSeconds">;
  adoption: Adoption;
  processId: string;
  leaseSeconds: number;
  /** The longest pause after a claim that failed. */
  pollMs: number;
  /** There are slots at all. */
  takes: boolean;
  logger: Logger;
}

/**
 * Slots that get free while runs wait are filled by a claim each, so many at a time: waiting for the one under way
 * before the next left slots idle for another round trip.
 */
const CLAIMS_AT_MOST = 3;

/** Takes what waits in the queue as slots get free. */
export const createClaims = (parts: ClaimsParts) => {
  const { queue, inHand, suspects, adoption, processId, leaseSeconds, logger } = parts;
  const underWay = new Set<Promise<void>>();
  const backOff = createBackOff({ longestMs: parts.pollMs });
  let stopped = false;
  let holders = 0;
  /** Something may have become available since the last claim. */
  let wanted = false;
  /** Runs are known to wait: new ones queue up behind them instead of taking the next free slot. */
  let backlog = false;
  let polling: Promise<void> | undefined;

  const claim = async (): Promise<void> => {
    wanted = false;
    const slots = Math.min(inHand.freeSlots, queue.claimedAtOnce);
    inHand.reserve(slots);
    let runs: ClaimedRunRow[] = [];
    try {
      runs = await queue.claim(processId, leaseSeconds, slots);
      backOff.reset();
      backlog = runs.length === slots;
      wanted ||= backlog;
    } catch (error) {
      adoption.claimFailed(error);
      // Another claimer was faster on a thread: look again.
      if (sqlState(error) === UNIQUE_VIOLATION) wanted = true;
      else if (isPassing(error)) {
        logger.debug({ err: error }, "the queue can't be read for now");
        setTimeout(wake, backOff.next()).unref();
      } else logger.error({ err: error }, "runs could not be claimed");
    } finally {
      inHand.release(slots);
    }
    for (const run of runs) if (!inHand.hasBegun(run)) inHand.begin(run, false);
  };

  const wake = (): void => {
    wanted = true;
    if (stopped || holders > 0 || !parts.takes || underWay.size === CLAIMS_AT_MOST) return;
    if (inHand.freeSlots <= 0) {
      backlog ||= underWay.size === 0;
      return;
    }
    const claiming = claim().finally(() => {
      underWay.delete(claiming);
      if (wanted && inHand.freeSlots > 0) wake();
    });
    underWay.add(claiming);
  };

  /** The looks for a suspect, which `claim` leaves alone, are few: there hardly ever is one. */
  const claimSuspect = async (): Promise<void> => {
    if (stopped || suspects.isFull || (inHand.freeSlots <= 0 && !suspects.hasOwnPlaces)) return;
    const isIdle = inHand.isIdle && underWay.size === 0 && !backlog;
    try {
      // No slot is held for what is almost never there: new runs would have to wait for this look, each second. Should
      // one take the last slot meanwhile, the process executes one run more than it may for once.
      const run = await queue.claimSuspect(processId, leaseSeconds, suspects.restSeconds(isIdle));
      if (run !== undefined) inHand.begin(run, false);
    } catch (error) {
      adoption.claimFailed(error);
      // The next look is a second away, whatever it was.
      logger.debug({ err: error }, "a run that lost its workers could not be claimed");
    }
  };

  return {
    wake,
    /** Whether a run that is created now may take a slot at once. */
    get leavesSlotsToNewRuns(): boolean {
      return !stopped && !backlog;
    },
    /** Claims nothing until what it returns is called: something else needs the processor first. */
    hold(): () => void {
      holders += 1;
      let isHeld = true;
      return () => {
        if (!isHeld) return;
        isHeld = false;
        holders -= 1;
        wake();
      };
    },
    /** A slot got free, of a run that others may have waited for: not every one is worth a look into the queue. */
    slotFreed(mayHaveWork: boolean): void {
      if (wanted || mayHaveWork) wake();
    },
    /** A graph ended. Looking into an empty queue after each run would be one more statement for each of them. */
    graphEnded(): void {
      if (backlog || wanted) wake();
    },
    /** Looks for all that no signal tells of. One look at a time. */
    poll(): void {
      // First of all, for the other claim takes every free slot.
      polling ??= adoption
        .poll()
        .then(claimSuspect)
        .finally(() => {
          polling = undefined;
          wake();
        });
    },
    /** Claims nothing from now on; resolves when those under way are answered. */
    async stop(): Promise<void> {
      stopped = true;
      await Promise.all([...underWay, polling]);
    },
  };
};
