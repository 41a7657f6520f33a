import type pg from "pg";
import { sqlState } from "../domain/errors.ts";
import type { Logger } from "../lib/logger.ts";

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
