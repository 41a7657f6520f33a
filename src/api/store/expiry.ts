import { THE_SERVER } from "../../access/caller.ts";
import { logFailure } from "../../platform/database/outages.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { startPeriodic } from "../../platform/lib/periodic.ts";
import type { StoreService } from "./service.ts";

/** Frequent, small sweeps stay short beside live traffic. */
const SWEEP_MS = 10_000;
const EXPIRED_PER_SWEEP = 5_000;
/** Rarer sweeps gain nothing, because expired items are invisible. */
const SWEEP_AT_MOST_MS = 24 * 3_600_000;

export const startItemExpiry = (
  store: Pick<StoreService, "deleteExpired">,
  everyMinutes: number | undefined,
  logger: Logger,
): { close(): Promise<void> } =>
  startPeriodic({
    everyMs: everyMinutes === undefined ? SWEEP_MS : Math.min(everyMinutes * 60_000, SWEEP_AT_MOST_MS),
    async work() {
      while ((await store.deleteExpired(THE_SERVER, EXPIRED_PER_SWEEP)) === EXPIRED_PER_SWEEP);
    },
    onError: logFailure(logger, "expired items could not be removed"),
  });
