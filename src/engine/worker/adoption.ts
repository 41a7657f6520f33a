import { mayHaveBeenCommitted } from "../../platform/database/passing-faults.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { selectorOf } from "../queue/attempts.ts";
import type { Queue } from "../queue/queue.ts";
import type { RunsInHand } from "./runs-in-hand.ts";

export interface AdoptionParts {
  queue: Pick<Queue, "listUnknown" | "handBack" | "giveUpLease">;
  inHand: Pick<RunsInHand, "runIds" | "has" | "hasBegun" | "freeSlots" | "begin">;
  processId: string;
  logger: Logger;
}

/** A claim whose answer was lost is committed by then, if it is at all. */
const UNSURE_MS = 3_000;

/**
 * Runs that the table says this process holds and that it doesn't know, because the answer to their claim was lost.
 * Nobody else would execute them before the lease is over.
 */
export const createAdoption = ({ queue, inHand, processId, logger }: AdoptionParts) => {
  /** When the answer to a claim was lost last. */
  let unsureSince: number | undefined;
  return {
    /** A claim failed with this error. */
    claimFailed(error: unknown): void {
      if (mayHaveBeenCommitted(error)) unsureSince = performance.now();
    },
    /** Looks for them if an answer was lost of late, and begins them as far as there are slots. Never rejects. */
    async poll(): Promise<void> {
      const since = unsureSince;
      if (since === undefined) return;
      const checked = performance.now();
      try {
        for (const run of await queue.listUnknown(processId, inHand.runIds)) {
          // It may have come to be known, or its slot have been given away, while the answer was on its way.
          if (inHand.has(run.run_id)) continue;
          if (inHand.hasBegun(run)) {
            // Executed here already, and its outcome could not be stored: only another attempt may go on with it.
            await queue.giveUpLease(selectorOf(run));
            continue;
          }
          logger.warn(
            { run_id: run.run_id },
            "the answer to the claim of a run was lost; the run goes on here",
          );
          if (inHand.freeSlots > 0) inHand.begin(run, false);
          else await queue.handBack(selectorOf(run));
        }
        if (unsureSince === since && checked - since > UNSURE_MS) unsureSince = undefined;
      } catch (error) {
        logger.debug({ err: error }, "runs whose claim was not heard of can't be looked for now");
      }
    },
  };
};

export type Adoption = ReturnType<typeof createAdoption>;
