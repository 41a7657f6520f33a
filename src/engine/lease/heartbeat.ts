import { openDatabase, type Database } from "../../platform/database/database.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { Queue } from "../queue/queue.ts";
import type { Execution } from "../attempt/execution.ts";
import { createHeldAttempts, SLOTS } from "./held-attempts.ts";
import { createLoopRenewals } from "./loop-renewals.ts";
import { createWatchedThread } from "./watched-thread.ts";

export interface HeartbeatOptions {
  queue: Queue;
  /** For connections of its own: a busy pool must not cost leases. */
  connectionString: string;
  /** The connections that all share, for when there is none of its own to be had. */
  shared: Pick<Database, "query">;
  schema: string;
  preparedStatements: boolean;
  leaseSeconds: number;
  heartbeatSeconds: number;
  /** How long an event loop that stands still keeps its leases; 0: no thread, leases are renewed by the loop alone. */
  blockedLoopSeconds: number;
  /** Ends the process when its loop stands still for longer, unless a debugger listens, which may have stopped it. */
  endsBlockedProcess?: boolean | undefined;
  /** Told at each renewal of a run whose events are read elsewhere, should the signal that says so not have come. */
  onReadElsewhere(runId: string): void;
  /** What the thread executes; tests pass what fails. */
  threadEntry?: URL;
  logger: Logger;
}

/** Keeps the leases of this process's attempts, and stops those that were lost or are to be cancelled. */
export interface Heartbeat {
  /** Held from now on. Starts the thread, if this is the first one. */
  begun(execution: Execution): void;
  ended(execution: Execution): void;
  /** Not at the next heartbeat, but now: something is to be cancelled. */
  renew(): void;
  close(): Promise<void>;
}

const APPLICATION_NAME = "threadloom heartbeat";
/** A heartbeat that gets no answer must leave time for another one, over another connection. */
const TIMEOUTS_PER_LEASE = 4;
const TIMEOUT_AT_LEAST_MS = 250;
const THREAD_ENTRY = new URL("./heartbeat-thread-entry.js", import.meta.url);

/**
 * A thread renews the leases, because user code can block the event loop for longer than a lease, and must not lose
 * its work for that, nor that of its neighbours. While the loop lives it watches the thread, and renews itself
 * whenever the thread does not; while the loop is blocked the thread goes on for `blockedLoopSeconds`: an endless loop
 * must not keep its neighbours for ever. Two renewals at the same time harm nobody.
 *
 * Both have a connection of their own, because those that all share may be busy for longer than a lease. But one that has to
 * be made anew is refused when the database's connections are used up (53300), while the process still holds those of its
 * pool: it would live, and work, and lose all its runs. So each renewal that failed is made once more over the pool, by
 * the loop, which is alive, since it heard of the failure. The pool alone would not do, nor the own connection.
 */
export const createHeartbeat = (options: HeartbeatOptions): Heartbeat => {
  const { queue, shared, connectionString, schema, preparedStatements, leaseSeconds, logger } = options;
  const heartbeatMs = options.heartbeatSeconds * 1_000;
  const timeoutMs = Math.max(TIMEOUT_AT_LEAST_MS, (leaseSeconds * 1_000) / TIMEOUTS_PER_LEASE);
  const connection = {
    connectionString,
    schema,
    preparedStatements,
    timeoutMs,
    applicationName: APPLICATION_NAME,
    logger,
  };
  /** Not connected before the loop renews by itself. */
  const database = openDatabase({ ...connection, poolSize: 1 });
  const held = new Map<string, Execution>();
  const heldAttempts = createHeldAttempts();
  /** Also of what was lost, until it has ended. */
  const slots = new Map<Execution, number | undefined>();
  let tickedAt = performance.now();

  const loop = createLoopRenewals({
    queue,
    own: database,
    shared,
    held,
    leaseSeconds,
    heartbeatMs,
    timeoutMs,
    onReadElsewhere: (runId) => options.onReadElsewhere(runId),
    logger,
  });
  const thread = createWatchedThread({
    ...connection,
    leaseSeconds,
    heartbeatMs,
    blockedLoopSeconds: options.blockedLoopSeconds,
    endsBlockedProcess: options.endsBlockedProcess === true,
    held: heldAttempts.memory,
    entry: options.threadEntry ?? THREAD_ENTRY,
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
      logger.warn({ seconds }, "the event loop stood still for longer than a lease");
      thread.forgive(now);
      renew();
    } else if (!thread.isBeating(now) || slots.size > SLOTS) loop.renew();
  }, heartbeatMs);
  timer.unref();

  return {
    begun(execution) {
      held.set(execution.runId, execution);
      slots.set(execution, heldAttempts.add(execution));
      thread.start();
    },
    ended(execution) {
      if (held.get(execution.runId) === execution) held.delete(execution.runId);
      const slot = slots.get(execution);
      if (slot !== undefined) heldAttempts.remove(slot);
      slots.delete(execution);
    },
    renew,
    async close() {
      loop.stop();
      clearInterval(timer);
      await thread.close();
      await loop.settled();
      await database.close();
    },
  };
};
