import { createEventLog } from "../../engine/events/log.ts";
import { startEventRetention } from "../../engine/events/retention.ts";
import { createTraceStorage } from "../../engine/traces/storage.ts";
import { startTraceRetention } from "../../engine/traces/retention.ts";
import { createDeliveries } from "../../engine/outbox/deliveries.ts";
import { startOutboxRetention } from "../../engine/outbox/dispatcher.ts";
import { startItemExpiry } from "../../api/store/service.ts";
import { startRetention } from "../../api/threads/upkeep/retention.ts";
import { startMovingContents } from "../../state/checkpoints/upkeep/object-sweeps.ts";
import { startThreadlessSweep } from "../../api/threads/upkeep/threadless.ts";
import type { ServerExecution } from "./execution.ts";
import type { Foundation } from "./foundation.ts";
import type { Services } from "./services.ts";

/** Ten seconds by default: the removal waits for a minute anyway. */
const SWEEPS_PER_THREADLESS_SWEEP = 5;

/**
 * Every process sweeps, and skips rows that another process has locked. engine/recovery.ts handles runs of
 * dead processes.
 */
export const startSweeps = (
  foundation: Foundation,
  { queue }: ServerExecution,
  { threads, onThreadsDeleted }: Services,
): void => {
  const { lifecycle, logger } = foundation;
  const { config, database, authorize, checkpoints, store, threadExpiry, storeExpiry } = foundation;
  lifecycle.closing(
    startRetention({ database, authorize, checkpoints, onThreadsDeleted, expiry: threadExpiry, logger }),
  );
  lifecycle.closing(startEventRetention(createEventLog(database), config.eventRetentionSeconds, logger));
  lifecycle.closing(
    startTraceRetention(
      createTraceStorage(database),
      { traces: config.traceRetentionSeconds, usage: config.usageRetentionSeconds },
      logger,
    ),
  );
  if (database.objects !== undefined)
    lifecycle.closing(startMovingContents(database, database.objects, logger));
  lifecycle.closing(startOutboxRetention(createDeliveries(database), config.webhookRetentionSeconds, logger));
  lifecycle.closing(startItemExpiry(store, storeExpiry.sweepIntervalMinutes, logger));
  lifecycle.closing(
    startThreadlessSweep(queue, threads.upkeep, config.sweepSeconds * SWEEPS_PER_THREADLESS_SWEEP, logger),
  );
};
