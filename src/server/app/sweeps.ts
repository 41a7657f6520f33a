import { startEventRetention } from "../../engine/events/retention.ts";
import { startOutboxRetention, type OutboxRetentionParts } from "../../engine/outbox/retention.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { startItemExpiry } from "../../api/store/expiry.ts";
import { startRetention } from "../../api/threads/upkeep/retention.ts";
import { startThreadlessSweep } from "../../api/threads/upkeep/threadless.ts";
import type { ServerExecution } from "./execution.ts";
import type { Foundation } from "./foundation.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { Services } from "./services.ts";

interface SweepParts {
  foundation: Foundation;
  execution: ServerExecution;
  services: Services;
  deliveries: OutboxRetentionParts["deliveries"];
  lifecycle: Lifecycle;
  logger: Logger;
}

/** Every process sweeps and skips rows that another has locked. engine/recovery.ts handles runs of dead processes. */
export const startSweeps = (parts: SweepParts): void => {
  const { foundation, execution, services, deliveries, lifecycle, logger } = parts;
  const { config, database, authorize, checkpoints, store, threadExpiry, storeExpiry } = foundation;
  const { queue, eventLog } = execution;
  const { threads, onThreadsDeleted } = services;
  lifecycle.closing(
    startRetention({ database, authorize, checkpoints, onThreadsDeleted, expiry: threadExpiry, logger }),
  );
  lifecycle.closing(
    startEventRetention({ eventLog, retentionSeconds: config.eventRetentionSeconds, logger }),
  );
  lifecycle.closing(
    startOutboxRetention({ deliveries, retentionSeconds: config.webhookRetentionSeconds, logger }),
  );
  lifecycle.closing(
    startItemExpiry({ store, sweepIntervalMinutes: storeExpiry.sweepIntervalMinutes, logger }),
  );
  lifecycle.closing(
    startThreadlessSweep({ queue, upkeep: threads.upkeep, sweepSeconds: config.sweepSeconds, logger }),
  );
};
