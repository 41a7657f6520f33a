import type { Worker } from "../../engine/worker/worker.ts";
import type { StatusService } from "../../api/status/service.ts";

/** What became of runs as a server closed, for its log. */
export interface RunsLeft {
  /** Of those in its hands, in the grace period. */
  runs_ended?: number;
  /** Of those in its hands: others go on with them, or the next server that starts. */
  runs_handed_back?: number;
  /** All that wait then, also those handed back that nobody has taken yet; undefined if the database did not answer. */
  runs_pending?: number | undefined;
}

/** Ends or hands back the runs of a server that closes, as `Worker.close` does, and counts them. */
export const leaveRuns = async (
  worker: Pick<Worker, "close">,
  status: Pick<StatusService, "pendingRuns">,
  graceSeconds: number,
  options: { failed: boolean },
): Promise<RunsLeft> => {
  const { ended, handedBack } = await worker.close(graceSeconds, options);
  return { runs_ended: ended, runs_handed_back: handedBack, runs_pending: await status.pendingRuns() };
};
