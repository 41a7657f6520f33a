import { mayHaveBeenCommitted } from "../../platform/database/passing-faults.ts";
import { selectorOf } from "../queue/attempts.ts";
import type { RunsInHand, WorkerOptions } from "./runs-in-hand.ts";

const UNSURE_MS = 3_000;

/**
 * Finds runs that the table assigns to this process although the response to their claim was lost. No other
 * process executes them before the lease is over.
 */
export const createAdoption = ({ queue, processId, logger }: WorkerOptions, inHand: RunsInHand) => {
  let unsureSince: number | undefined;
  return {
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
          logger.warn(
            { run_id: run.run_id },
            "the response to the claim of a run was lost; the run starts here",
          );
          if (inHand.freeSlots > 0) inHand.begin(run, false);
          else await queue.handBack(selectorOf(run));
        }
        if (unsureSince === since && checked - since > UNSURE_MS) unsureSince = undefined;
      } catch (error) {
        logger.debug({ err: error }, "runs with a lost response to their claim could not be listed");
      }
    },
  };
};

export type Adoption = ReturnType<typeof createAdoption>;
