import { THE_SERVER } from "../../../access/caller.ts";
import { logFailure } from "../../../platform/database/outages.ts";
import type { Logger } from "../../../platform/lib/logger.ts";
import { startPeriodic } from "../../../platform/lib/periodic.ts";
import type { Queue } from "../../../engine/queue/queue.ts";
import type { UpkeepService } from "./service.ts";

/** Readers on other processes may still be reading the end. */
const LINGER_SECONDS = 60;

export const startThreadlessSweep = (
  queue: Pick<Queue, "listEndedThreadless">,
  upkeep: Pick<UpkeepService, "prune">,
  everySeconds: number,
  logger: Logger,
): { close(): Promise<void> } =>
  startPeriodic({
    everyMs: everySeconds * 1_000,
    async work() {
      const ended = await queue.listEndedThreadless(LINGER_SECONDS);
      if (ended.length > 0) await upkeep.prune(THE_SERVER, { thread_ids: ended, strategy: "delete" });
    },
    onError: logFailure(logger, "ended threadless runs could not be removed"),
  });
