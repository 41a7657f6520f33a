import { sqlState } from "../domain/errors.ts";
import type { Logger } from "../lib/logger.ts";
import { isContention, isOutOfRoom, isPassing, mayHaveBeenCommitted } from "./passing-faults.ts";

/** Tells the log when the database goes away and when it is back. */
export interface Outages {
  /** A statement failed. Whatever says that the database did not take it begins an outage. */
  failed(error: unknown): void;
  /** A statement was answered. */
  worked(): void;
}

/** A server that is full answers some and refuses others: it counts as back only when it has refused nobody so long. */
const QUIET_MS = 1_000;
/** Where the disk is full, reads work and writes into pages that have room, for minutes between two that are refused. */
const QUIET_WHEN_FULL_MS = 60_000;

const isAwayOrFull = (error: unknown): boolean =>
  isPassing(error) && !isContention(error) && !mayHaveBeenCommitted(error);

export const createOutages = (logger: Logger): Outages => {
  let since: number | undefined;
  let lastAt = 0;
  let isDiskFull = false;
  return {
    failed(error) {
      if (!isAwayOrFull(error)) return;
      lastAt = performance.now();
      isDiskFull = isOutOfRoom(error);
      if (since !== undefined) return;
      since = lastAt;
      const reason = error instanceof Error ? error.message : "";
      logger.error({ reason, code: sqlState(error) }, "the database is away, or takes no statements");
    },
    worked() {
      if (since === undefined) return;
      const now = performance.now();
      if (now - lastAt < (isDiskFull ? QUIET_WHEN_FULL_MS : QUIET_MS)) return;
      logger.info({ seconds: Math.round((now - since) / 100) / 10 }, "the database is back again");
      since = undefined;
    },
  };
};

/**
 * For work that is repeated, and that nobody waits for: what passes has a line of its own (see Outages), and the work is
 * tried again.
 */
export const logFailure =
  (logger: Logger, message: string) =>
  (error: unknown): void =>
    logger[isPassing(error) ? "debug" : "warn"]({ err: error }, message);
