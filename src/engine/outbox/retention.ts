import { logFailure } from "../../platform/database/outages.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { startPeriodic } from "../../platform/lib/periodic.ts";
import type { Deliveries } from "./deliveries.ts";

const SWEEP_MS = 60_000;
/** Rows may hold megabytes. */
const PER_BATCH = 500;

/** Several processes share the work: the statement skips locked rows. */
export const startOutboxRetention = (
  deliveries: Pick<Deliveries, "removeSettled">,
  retentionSeconds: number,
  logger: Logger,
): { close(): Promise<void> } => {
  let closed = false;
  const periodic = startPeriodic({
    everyMs: SWEEP_MS,
    async work() {
      while (!closed && (await deliveries.removeSettled(retentionSeconds, PER_BATCH)) >= PER_BATCH);
    },
    onError: logFailure(logger, "old deliveries of webhooks could not be removed"),
  });
  return {
    async close() {
      closed = true;
      await periodic.close();
    },
  };
};
