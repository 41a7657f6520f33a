import type { Server } from "../../server/app/compose.ts";
import { isPassing, retryPassing, unusableReason } from "../../platform/database/passing-faults.ts";
import type { Logger } from "../../platform/lib/logger.ts";

/** An error of ours around that of the database, see migrate.ts. */
const isMigrationFailure = (error: unknown): error is Error =>
  error instanceof Error && error.message.startsWith("Migration ");

export interface BuildingOptions {
  /** No try begins later; 0: there is one. */
  forMs: number;
  /** Aborts when the process is to end. */
  signal: AbortSignal;
  logger: Logger;
}

/** Builds a server, again if its database dies meanwhile. `build` closes what it has opened when it fails. */
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
