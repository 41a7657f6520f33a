import type pg from "pg";
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

/** Connections that are lost together have one cause. */
const LOSS_LOGGED_EVERY_MS = 10_000;

/**
 * Logs lost connections. Without its listeners a terminated backend ends the process: an idle client emits on the
 * pool, a client in a transaction on itself.
 */
export const createLosses = (logger: Logger) => {
  const listeners = new Set<() => void>();
  const received = new WeakSet<Error>();
  let loggedAt = -Infinity;
  const lost = (error: Error): void => {
    // A stopping database closes all connections: log one line.
    const now = performance.now();
    const level = now - loggedAt < LOSS_LOGGED_EVERY_MS ? "debug" : "warn";
    if (level === "warn") loggedAt = now;
    // Log no error object: `pg` attaches the client with every prepared statement.
    logger[level]({ reason: error.message, code: sqlState(error) }, "a database connection was lost");
    for (const listener of listeners) listener();
  };
  return {
    watch(pool: pg.Pool): void {
      pool.on("error", (error) => {
        if (!received.has(error)) lost(error);
      });
      pool.on("connect", (client) => {
        client.on("error", (error) => {
          received.add(error);
          lost(error);
        });
      });
    },
    /** Returns the unsubscribe function. */
    listen(listener: () => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
};
