import { logFailure } from "../../platform/database/outages.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { startPeriodic } from "../../platform/lib/periodic.ts";
import type { TraceStorage } from "./storage.ts";

const SWEEP_MS = 60_000;
const PER_BATCH = 1_000;

/** Several processes share the work: the statements skip locked rows. */
export const startTraceRetention = (
  storage: Pick<TraceStorage, "deleteTraces" | "deleteUsage">,
  seconds: { traces: number; usage: number },
  logger: Logger,
): { close(): Promise<void> } => {
  let closed = false;
  const periodic = startPeriodic({
    everyMs: SWEEP_MS,
    async work() {
      while (!closed && (await storage.deleteTraces(seconds.traces, PER_BATCH)) >= PER_BATCH);
      while (!closed && (await storage.deleteUsage(seconds.usage, PER_BATCH)) >= PER_BATCH);
    },
    onError: logFailure(logger, "old traces could not be removed"),
  });
  return {
    async close() {
      closed = true;
      await periodic.close();
    },
  };
};
