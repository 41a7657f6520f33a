import type { StopReason } from "../executors/executor.ts";
import type { RunsInHand } from "./runs-in-hand.ts";

/** A statement that creates a run takes a few milliseconds. */
const CLOSING_LOOK_MS = 10;

const pause = async (ms: number): Promise<void> => await new Promise((resolve) => setTimeout(resolve, ms));

/** Resolves when no run is left here: those that have not ended within `graceSeconds` are stopped for `reason`. */
export const drain = async (
  inHand: Pick<RunsInHand, "all" | "isIdle">,
  graceSeconds: number,
  reason: StopReason,
): Promise<void> => {
  const stopAll = (): void => {
    for (const execution of inHand.all()) execution.stop(reason);
  };
  const allEnded = async (): Promise<void> => {
    await Promise.all(inHand.all().map((execution) => execution.ended));
  };
  const drained = allEnded();
  let timer: NodeJS.Timeout | undefined;
  const grace = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, graceSeconds * 1_000);
  });
  await Promise.race([drained, grace]);
  clearTimeout(timer);
  stopAll();
  await drained;
  // A run whose creation was under way has been started since; it is handed back, too.
  while (!inHand.isIdle) {
    stopAll();
    await allEnded();
    await pause(CLOSING_LOOK_MS);
  }
};
