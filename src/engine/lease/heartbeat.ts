import { openDatabase, type Database } from "../../platform/database/database.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { Queue } from "../queue/queue.ts";
import type { Execution } from "../attempt/execution.ts";
import { createHeldAttempts, SLOTS } from "./held-attempts.ts";
import { createLoopRenewals } from "./loop-renewals.ts";
import { createWatchedThread } from "./watched-thread.ts";

interface HeartbeatOptions {
  queue: Queue;
  connectionString: string;
  /** The common pool, for renewals that fail on the own connection. */
  shared: Pick<Database, "query">;
  schema: string;
  preparedStatements: boolean;
  leaseSeconds: number;
  heartbeatSeconds: number;
  /** How long a blocked event loop keeps its leases; 0: no thread, the event loop alone renews. */
  blockedLoopSeconds: number;
  /** Not while a debugger is attached, which may have stopped the loop. */
  endsBlockedProcess?: boolean | undefined;
  /** Called at each renewal of a run that another process reads, in case the signal was lost. */
  onReadElsewhere(runId: string): void;
  threadEntry?: URL;
  logger: Logger;
}

/** Renews the leases of this process's attempts; stops attempts that were lost or are to be cancelled. */
export interface Heartbeat {
  /** Starts the thread with the first execution. */
  begun(execution: Execution): void;
  ended(execution: Execution): void;
  /** Renews now, not at the next heartbeat: a run is to be cancelled. */
  renew(): void;
  close(): Promise<void>;
}

const APPLICATION_NAME = "threadloom heartbeat";
/** A heartbeat without an answer must leave time for another one on a new connection. */
const TIMEOUTS_PER_LEASE = 4;
const TIMEOUT_AT_LEAST_MS = 250;
const THREAD_ENTRY = new URL("./heartbeat-thread-entry.js", import.meta.url);

/**
 * A thread renews the leases, because user code can block the event loop for longer than a lease. The loop
 * renews when the thread does not; concurrent renewals do no harm. While the loop is blocked the thread goes
 * on for `blockedLoopSeconds` only, because an endless loop must not hold the other runs for ever. Both have
 * their own connection, because the pool may be busy for longer than a lease. The database may refuse a new
 * connection (53300), so the loop repeats failed renewals over the pool.
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
  /** Connects when the loop first renews. */
  const database = openDatabase({ ...connection, poolSize: 1 });
  const held = new Map<string, Execution>();
  const heldAttempts = createHeldAttempts();
  /** Includes lost attempts until they have ended. */
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
      logger.warn({ seconds }, "the event loop was blocked for longer than a lease");
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
