import type { ClaimedRunRow } from "../../platform/database/tables.ts";
import { isPassing, mayHaveBeenCommitted } from "../../platform/database/passing-faults.ts";
import { createBackOff } from "../../platform/lib/back-off.ts";
import { sqlState, UNIQUE_VIOLATION } from "../../platform/domain/errors.ts";
import type { Waiting } from "../queue/sql/find-waiting.ts";
import type { RunsInHand, WorkerOptions } from "./runs-in-hand.ts";
import { selectorOf } from "../queue/attempts.ts";

const UNSURE_MS = 3_000;

/**
 * Finds runs that the table assigns to this process although the response to their claim was lost. No other
 * process executes them before the lease is over.
 */
export const createAdoption = ({ queue, processId, logger }: WorkerOptions, inHand: RunsInHand) => {
  let unsureSince: number | undefined;
  const hasRoomFor = (run: ClaimedRunRow): boolean => !queue.goesAlone(run) || inHand.roomAlone > 0;
  const handBack = async (run: ClaimedRunRow): Promise<void> => {
    // A run that is to be cancelled ends here, because no process would cancel it in the queue.
    if ((await queue.handBack(selectorOf(run))) !== undefined) inHand.begin(run, false);
  };
  return {
    /** Begins claimed runs. Returns true if more of them need a process of their own than may have one. */
    async begin(runs: readonly ClaimedRunRow[]): Promise<boolean> {
      const beyond = runs.filter((run) => {
        if (inHand.hasBegun(run)) return false;
        if (!hasRoomFor(run)) return true;
        inHand.begin(run, false);
        return false;
      });
      try {
        for (const run of beyond) await handBack(run);
      } catch (error) {
        unsureSince = performance.now();
        logger.debug({ err: error }, "claimed runs could not be handed back; it is tried again");
      }
      return beyond.length > 0;
    },
    claimFailed(error: unknown): void {
      if (mayHaveBeenCommitted(error)) unsureSince = performance.now();
    },
    /** Begins unknown runs as far as slots are free, if a response was lost recently. Never rejects. */
    async poll(): Promise<void> {
      const since = unsureSince;
      if (since === undefined) return;
      const checked = performance.now();
      try {
        for (const run of await queue.listUnknown(processId, inHand.runIds)) {
          // The run may have become known during the query.
          if (inHand.has(run.run_id)) continue;
          if (inHand.hasBegun(run)) {
            // Executed here already, but its outcome could not be stored: only a new attempt may continue.
            await queue.giveUpLease(selectorOf(run));
            continue;
          }
          const starts = inHand.freeSlots > 0 && hasRoomFor(run);
          const next = starts ? "starts here" : "goes back to the queue";
          logger.warn({ run_id: run.run_id }, `the response to the claim of a run was lost; the run ${next}`);
          if (starts) inHand.begin(run, false);
          else await handBack(run);
        }
        if (unsureSince === since && checked - since > UNSURE_MS) unsureSince = undefined;
      } catch (error) {
        logger.debug({ err: error }, "runs with a lost response to their claim could not be listed");
      }
    },
  };
};

type Adoption = ReturnType<typeof createAdoption>;

/** Concurrent claims. With one at a time, slots were idle for another round trip. */
const CLAIMS_AT_MOST = 3;

export const createClaims = (
  { queue, concurrency, processId, leaseSeconds, onDeliveriesDue, logger }: WorkerOptions,
  { inHand, adoption }: { inHand: RunsInHand; adoption: Adoption },
  pollMs: number,
) => {
  const underWay = new Set<Promise<void>>();
  const backOff = createBackOff({ longestMs: pollMs });
  let stopped = false;
  let holders = 0;
  let wanted = false;
  /** Runs are known to wait, so new runs do not take the next free slot. */
  let backlog = false;
  /** So many runs wait for a process of their own that a claim must take no more than may have one. */
  let aloneWait = false;
  let polling: Promise<void> | undefined;

  const claim = async (): Promise<void> => {
    wanted = false;
    const room = inHand.roomAlone;
    const most = aloneWait && room > 0 ? room : queue.claimedAtOnce;
    const slots = Math.min(inHand.freeSlots, queue.claimedAtOnce, most);
    inHand.reserve(slots);
    let runs: ClaimedRunRow[] = [];
    try {
      runs = await queue.claim(processId, leaseSeconds, slots, { withAlone: room > 0 });
      backOff.reset();
      backlog = runs.length === slots;
      wanted ||= backlog;
    } catch (error) {
      adoption.claimFailed(error);
      // Another claimer started a run of the same thread first.
      if (sqlState(error) === UNIQUE_VIOLATION) wanted = true;
      else if (isPassing(error)) {
        logger.debug({ err: error }, "the queue can't be read for now");
        setTimeout(wake, backOff.next()).unref();
      } else logger.error({ err: error }, "runs could not be claimed");
    } finally {
      inHand.release(slots);
    }
    const isBeyond = await adoption.begin(runs);
    if (room > 0) aloneWait = isBeyond || (aloneWait && runs.length === slots);
  };

  const wake = (): void => {
    wanted = true;
    if (stopped || holders > 0 || concurrency === 0 || underWay.size === CLAIMS_AT_MOST) return;
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

  /** Signals announce most work, so this usually finds nothing. */
  const findWaiting = async (): Promise<Waiting> => {
    try {
      return await queue.findWaiting();
    } catch (error) {
      logger.debug({ err: error }, "the queue can't be polled for now");
      // The claim reports the fault, and is soon repeated.
      return { runs: true, deliveries: false };
    }
  };

  const poll = async (): Promise<void> => {
    await adoption.poll();
    const waiting = await findWaiting();
    if (waiting.deliveries) onDeliveriesDue?.();
    if (waiting.runs) wake();
  };

  return {
    wake,
    get leavesSlotsToNewRuns(): boolean {
      return !stopped && !backlog;
    },
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
    /** `mayBeMore`: runs may wait. Without such a hint no claim is made, to save a statement per run. */
    slotFreed(mayBeMore: boolean): void {
      if (mayBeMore || wanted) wake();
    },
    graphEnded(): void {
      if (backlog || wanted) wake();
    },
    /** Finds work without signals; one poll at a time. */
    poll(): void {
      polling ??= poll().finally(() => {
        polling = undefined;
      });
    },
    async stop(): Promise<void> {
      stopped = true;
      await Promise.all([...underWay, polling]);
    },
  };
};
