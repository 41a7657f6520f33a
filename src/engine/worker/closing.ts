import type { StopReason } from "../executors/executor.ts";
import type { RunsInHand } from "./runs-in-hand.ts";

const CLOSING_POLL_MS = 10;

const pause = async (ms: number): Promise<void> => await new Promise((resolve) => setTimeout(resolve, ms));

export interface Drained {
  ended: number;
  /** Another process continues these runs, or this one after a restart. */
  handedBack: number;
}

/** Resolves when no run is left. Runs that have not ended within `graceSeconds` are stopped for `reason`. */
export const drain = async (
  inHand: Pick<RunsInHand, "all" | "isIdle">,
  graceSeconds: number,
  reason: StopReason,
  claimsStopped: Promise<void>,
): Promise<Drained> => {
  const seen = new Map<string, boolean>();
  const stopAll = (): void => {
    for (const execution of inHand.all()) execution.stop(reason);
  };
  const allEnded = async (): Promise<void> => {
    await Promise.all(
      inHand.all().map(async ({ runId, ended }) => {
        seen.set(runId, (await ended) !== undefined);
      }),
    );
  };
  const before = allEnded();
  await claimsStopped;
  const drained = Promise.all([before, allEnded()]);
  let timer: NodeJS.Timeout | undefined;
  const grace = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, graceSeconds * 1_000);
  });
  await Promise.race([drained, grace]);
  clearTimeout(timer);
  stopAll();
  await drained;
  // A run that was being created may have started since; it is handed back, too.
  while (!inHand.isIdle) {
    stopAll();
    await allEnded();
    await pause(CLOSING_POLL_MS);
  }
  const ended = [...seen.values()].filter(Boolean).length;
  return { ended, handedBack: seen.size - ended };
};
