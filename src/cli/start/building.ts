import type { Server } from "../../server/app/compose.ts";
import { isPassing, retryPassing, unusableReason } from "../../platform/database/passing-faults.ts";
import type { Logger } from "../../platform/lib/logger.ts";

/** migrate.ts wraps the database's error in one with this text. */
const isMigrationFailure = (error: unknown): error is Error =>
  error instanceof Error && error.message.startsWith("Migration ");

interface BuildingOptions {
  /** No retry starts after this time; 0: one try. */
  forMs: number;
  signal: AbortSignal;
  logger: Logger;
}

/** Retries if the database dies meanwhile. A failed `build` must close everything it opened. */
export const buildBesideDatabase = (
  build: () => Promise<Server>,
  { forMs, signal, logger }: BuildingOptions,
): Promise<Server> =>
  retryPassing(build, {
    forMs,
    isWanted: () => !signal.aborted,
    after: (error) => {
      const reason = isMigrationFailure(error) ? error.cause : error;
      if (forMs === 0 || !isPassing(reason)) return false;
      logger.warn(
        { reason: unusableReason(reason) },
        "the database was lost during the start; starting again",
      );
      return true;
    },
  });
