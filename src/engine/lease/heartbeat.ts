import { openDatabase } from "../../platform/database/database.ts";
import { inSchema } from "../../platform/database/schema.ts";
import { RENEW } from "../queue/sql/renew.ts";
import type { Execution } from "../attempt/execution.ts";
import { createHeldAttempts, SLOTS } from "./held-attempts.ts";
import { createLoopRenewals, type HeartbeatOptions } from "./loop-renewals.ts";
import { createWatchedThread } from "./watched-thread.ts";

const APPLICATION_NAME = "threadloom heartbeat";
/** A heartbeat without an answer must leave time for another one on a new connection. */
const TIMEOUTS_PER_LEASE = 4;
const TIMEOUT_AT_LEAST_MS = 250;
const THREAD_ENTRY = new URL("./heartbeat-thread-entry.js", import.meta.url);

/**
 * A thread renews the leases, because user code can block the event loop for longer than a lease; the loop
 * renews when the thread does not. For a blocked loop the thread renews only for `blockedLoopSeconds`,
 * because an endless loop must not hold the other runs for ever. Both have their own connection, because the
 * pool may be busy for longer than a lease. If the database refuses that connection (53300), the loop renews
 * over the pool.
 */
export const createHeartbeat = (options: HeartbeatOptions) => {
  const { connectionString, schema, preparedStatements, leaseSeconds, blockedLoopSeconds, logger } = options;
  const heartbeatMs = options.heartbeatSeconds * 1_000;
  const timeoutMs = Math.max(TIMEOUT_AT_LEAST_MS, (leaseSeconds * 1_000) / TIMEOUTS_PER_LEASE);
  /** Connects when the loop first renews. */
  const database = openDatabase({
    connectionString,
    schema,
    poolSize: 1,
    preparedStatements,
    timeoutMs,
    applicationName: APPLICATION_NAME,
    logger,
  });
  const held = new Map<string, Execution>();
  const heldAttempts = createHeldAttempts();
  /** Includes lost attempts until they have ended. */
  const slots = new Map<Execution, number | undefined>();
  let tickedAt = performance.now();

  const loop = createLoopRenewals(options, database, held, { heartbeatMs, timeoutMs });
  const setup = {
    connectionString,
    applicationName: APPLICATION_NAME,
    statement: { text: inSchema(schema)(RENEW.text), name: preparedStatements ? "renew" : undefined },
    timeoutMs,
    leaseSeconds,
    heartbeatMs,
    blockedLoopMs: blockedLoopSeconds * 1_000,
    endsProcess: options.endsBlockedProcess === true,
    held: heldAttempts.memory,
  };
  const thread = createWatchedThread(setup, options.threadEntry ?? THREAD_ENTRY, logger, {
    onReport(report) {
      if (report.kind === "renewed") return loop.react(report.asked, report.rows);
      const { reason, code } = report;
      if (report.kind === "failed") loop.standIn({ reason, code });
      else logger.debug({ reason, code }, "a database connection was lost");
    },
    onDeath: () => loop.renew(),
  });

  const renew = (): void => {
    if (thread.isBeating(performance.now())) thread.renew();
    else loop.renew();
  };

  const timer = setInterval(() => {
    const now = performance.now();
    const stoodStillMs = now - tickedAt - heartbeatMs;
    tickedAt = now;
    thread.signOfLife();
    if (held.size > 0) thread.start();
    if (stoodStillMs > leaseSeconds * 1_000) {
      const seconds = Math.round(stoodStillMs / 1_000);
      logger.warn({ seconds }, "the event loop was blocked for longer than a lease");
      thread.forgive(now);
      renew();
    } else if (!thread.isBeating(now) || slots.size > SLOTS) loop.renew();
  }, heartbeatMs);
  timer.unref();

  return {
    begun(execution: Execution): void {
      held.set(execution.runId, execution);
      slots.set(execution, heldAttempts.add(execution));
      thread.start();
    },
    ended(execution: Execution): void {
      if (held.get(execution.runId) === execution) held.delete(execution.runId);
      const slot = slots.get(execution);
      if (slot !== undefined) heldAttempts.remove(slot);
      slots.delete(execution);
    },
    /** Renews now, not at the next heartbeat: a run is to be cancelled. */
    renew,
    async close(): Promise<void> {
      loop.stop();
      clearInterval(timer);
      await thread.close();
      await loop.settled();
      await database.close();
    },
  };
};

export type Heartbeat = ReturnType<typeof createHeartbeat>;
