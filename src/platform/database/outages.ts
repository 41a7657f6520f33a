import { sqlState } from "../domain/errors.ts";
import type { Logger } from "../lib/logger.ts";
import { isContention, isOutOfRoom, isPassing, mayHaveBeenCommitted } from "./passing-faults.ts";

/** A full server answers some statements and refuses others. */
const QUIET_MS = 1_000;
/** With a full disk, reads and some writes succeed for minutes between two refusals. */
const QUIET_WHEN_FULL_MS = 60_000;

const isAwayOrFull = (error: unknown): boolean =>
  isPassing(error) && !isContention(error) && !mayHaveBeenCommitted(error);

export const createOutages = (logger: Logger) => {
  let since: number | undefined;
  let lastAt = 0;
  let isDiskFull = false;
  return {
    failed(error: unknown): void {
      if (!isAwayOrFull(error)) return;
      lastAt = performance.now();
      isDiskFull = isOutOfRoom(error);
      if (since !== undefined) return;
      since = lastAt;
      const reason = error instanceof Error ? error.message : "";
      logger.error({ reason, code: sqlState(error) }, "the database is away, or takes no statements");
    },
    worked(): void {
      if (since === undefined) return;
      const now = performance.now();
      if (now - lastAt < (isDiskFull ? QUIET_WHEN_FULL_MS : QUIET_MS)) return;
      logger.info({ seconds: Math.round((now - since) / 100) / 10 }, "the database is back again");
      since = undefined;
    },
  };
};

/** `createOutages` logs passing faults, and the work runs again. */
export const logFailure =
  (logger: Logger, message: string) =>
  (error: unknown): void =>
    logger[isPassing(error) ? "debug" : "warn"]({ err: error }, message);
