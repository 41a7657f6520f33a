import { setTimeout as delay } from "node:timers/promises";
import { logFailure } from "../../platform/database/outages.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { startPeriodic } from "../../platform/lib/periodic.ts";
import type { EventLog } from "./log.ts";

const SWEEP_MS = 10_000;
/** Costs 50 ms of the database. */
const EVENTS_PER_BATCH = 5_000;

/**
 * One batch per sweep removed only 500 events/s, while 90,000/s can be written. Processes share the work: the
 * statement skips locked rows.
 */
export const sweepEvents = async (
  eventLog: Pick<EventLog, "deleteExpired">,
  retentionSeconds: number,
  signal?: AbortSignal,
): Promise<number> => {
  let removed = 0;
  let from: string | undefined;
  while (!signal?.aborted) {
    const startedAt = performance.now();
    const batch = await eventLog.deleteExpired(retentionSeconds, EVENTS_PER_BATCH, from);
    removed += batch.removed;
    from = batch.last;
    if (batch.removed < EVENTS_PER_BATCH) break;
    // Leaves the database to requests half of the time.
    await delay(performance.now() - startedAt, undefined, { signal }).catch(() => undefined);
  }
  return removed;
};

export const startEventRetention = (
  eventLog: EventLog,
  retentionSeconds: number,
  logger: Logger,
): { close(): Promise<void> } => {
  const closing = new AbortController();
  const periodic = startPeriodic({
    everyMs: SWEEP_MS,
    work: () => sweepEvents(eventLog, retentionSeconds, closing.signal),
    onError: logFailure(logger, "expired events could not be removed"),
  });
  return {
    async close() {
      closing.abort();
      await periodic.close();
    },
  };
};
