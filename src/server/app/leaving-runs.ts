import type { Worker } from "../../engine/worker/worker.ts";
import type { StatusService } from "../../api/status/service.ts";

export interface RunsLeft {
  /** Own runs that ended within the grace period. */
  runs_ended?: number;
  /** Own runs that another server or the next start continues. */
  runs_handed_back?: number;
  /** All pending runs; undefined if the database did not answer. */
  runs_pending?: number | undefined;
}

export const leaveRuns = async (
  worker: Pick<Worker, "close">,
  status: Pick<StatusService, "pendingRuns">,
  graceSeconds: number,
  options: { failed: boolean },
): Promise<RunsLeft> => {
  const { ended, handedBack } = await worker.close(graceSeconds, options);
  return { runs_ended: ended, runs_handed_back: handedBack, runs_pending: await status.pendingRuns() };
};
