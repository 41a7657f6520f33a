import { url as inspectorUrl } from "node:inspector";
import { openDatabase, type Database, type Queryable } from "../../database/database.ts";
import { retryPassing } from "../../database/passing-faults.ts";
import { createBackOff } from "../../lib/back-off.ts";
import { inSchema } from "../../database/schema.ts";
import { sqlState } from "../../domain/errors.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Execution } from "../attempt/execution.ts";
import {
  BEATS,
  COUNTERS,
  SIGNS_OF_LIFE,
  startHeartbeatThread,
  type HeartbeatThread,
  type ThreadReport,
} from "./heartbeat-thread.ts";
import { createHeldAttempts, SLOTS } from "./held-attempts.ts";
import type { AttemptSelector } from "../../queue/attempts.ts";
import type { Queue } from "../../queue/queue.ts";
import { RENEW, type HeartbeatRow } from "../../queue/sql/renew.ts";

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
/** A thread that ended is started anew after this time; meanwhile the event loop renews. */
const RESTART_MS = 30_000;
/** Pauses after failed renewals that the thread is given; the last is as long as it gets between two heartbeats. */
const RETRIES = 6;
/** Heartbeats without one of the thread after which the event loop does its work. */
const MISSED_BEATS = 2;

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
  const {
    queue,
    shared,
    connectionString,
    schema,
    preparedStatements,
    leaseSeconds,
    blockedLoopSeconds,
    onReadElsewhere,
    logger,
  } = options;
  const heartbeatMs = options.heartbeatSeconds * 1_000;
  const timeoutMs = Math.max(TIMEOUT_AT_LEAST_MS, (leaseSeconds * 1_000) / TIMEOUTS_PER_LEASE);
  /** Not connected before the loop renews by itself. */
  const database = openDatabase({
    connectionString,
    schema,
    poolSize: 1,
    applicationName: APPLICATION_NAME,
    preparedStatements,
    timeoutMs,
    logger,
  });
  const held = new Map<string, Execution>();
  const heldAttempts = createHeldAttempts();
  /** Also of what was lost, until it has ended. */
  const slots = new Map<Execution, number | undefined>();
  const counters = new Int32Array(new SharedArrayBuffer(COUNTERS * Int32Array.BYTES_PER_ELEMENT));
  let thread: HeartbeatThread | undefined;
  let startAt = blockedLoopSeconds === 0 ? Infinity : 0;
  let closed = false;
  let seenBeats = 0;
  let beatAt = 0;
  let tickedAt = performance.now();

  const react = (asked: readonly AttemptSelector[], rows: readonly HeartbeatRow[]): void => {
    const kept = new Map(rows.map((row) => [row.run_id, row]));
    for (const { runId, attempt } of asked) {
      const execution = held.get(runId);
      // It may have ended meanwhile, and the run be here again in a later attempt.
      if (execution?.attempt !== attempt) continue;
      const row = kept.get(runId);
      if (row === undefined) execution.stop({ kind: "lease-lost" });
      else if (row.cancel_action !== null) execution.stop({ kind: "cancel", action: row.cancel_action });
      if (row?.read_elsewhere === true) onReadElsewhere(runId);
    }
  };

  let failureToldAt = -Infinity;
  /** Each try again fails, too, while the database is away: told once per lease. */
  const tellFailed = (what: object, message: string): void => {
    const now = performance.now();
    const level = now - failureToldAt < leaseSeconds * 1_000 ? "debug" : "warn";
    if (level === "warn") failureToldAt = now;
    logger[level](what, message);
  };

  const renewOver = async (connection: Queryable): Promise<void> => {
    const asked = [...held.values()].map(({ threadId, runId, attempt }) => ({ threadId, runId, attempt }));
    if (asked.length > 0) react(asked, await queue.renew(asked, leaseSeconds, connection));
  };
  const boundedShared: Queryable = {
    query: (text, values) => shared.query(text, values, { answerMs: timeoutMs }),
  };

  let standingIn: Promise<void> | undefined;
  /**
   * A renewal over the own connection failed, the thread's or the loop's. One of these at a time, whatever fails meanwhile:
   * it takes a single connection of the pool, waits in its queue like anybody, and tries for a heartbeat at most.
   */
  const standIn = (failure: { reason: string; code: string | undefined }): void => {
    standingIn ??= retryPassing(() => renewOver(boundedShared), {
      forMs: heartbeatMs,
      isWanted: () => !closed,
    })
      .then(() => tellFailed(failure, "leases are renewed over shared connections; their own fails"))
      .catch((error: unknown) => tellFailed({ err: error, ...failure }, "leases could not be renewed"))
      .finally(() => {
        standingIn = undefined;
      });
  };

  let renewing: Promise<void> | undefined;
  const renewFromLoop = (): void => {
    const renewOverOwn = async (): Promise<void> => {
      try {
        await renewOver(database);
      } catch (error) {
        standIn({ reason: error instanceof Error ? error.message : String(error), code: sqlState(error) });
        throw error;
      }
    };
    renewing ??= retryPassing(renewOverOwn, { forMs: heartbeatMs, isWanted: () => !closed })
      .catch((error: unknown) =>
        logger.debug({ err: error }, "the loop could not renew over its own connection"),
      )
      .finally(() => {
        renewing = undefined;
      });
  };

  const onReport = (report: ThreadReport): void => {
    if (report.kind === "renewed") return react(report.asked, report.rows);
    const { reason, code } = report;
    if (report.kind === "failed") standIn({ reason, code });
    else logger.debug({ reason, code }, "a database connection was lost");
  };

  const startThread = (): void => {
    if (thread !== undefined || closed || performance.now() < startAt) return;
    seenBeats = 0;
    beatAt = performance.now();
    counters.fill(0);
    const retries = createBackOff({ longestMs: heartbeatMs });
    thread = startHeartbeatThread({
      setup: {
        connectionString,
        applicationName: APPLICATION_NAME,
        statement: { text: inSchema(schema)(RENEW), name: preparedStatements ? "renew" : undefined },
        timeoutMs,
        leaseSeconds,
        heartbeatMs,
        retriesMs: Array.from({ length: RETRIES }, () => retries.next()),
        blockedLoopMs: blockedLoopSeconds * 1_000,
        endsProcess: options.endsBlockedProcess === true && inspectorUrl() === undefined,
        held: heldAttempts.memory,
        counters,
      },
      entry: options.threadEntry ?? THREAD_ENTRY,
      onReport,
      onDeath(error) {
        thread = undefined;
        if (closed) return;
        startAt = performance.now() + RESTART_MS;
        logger.error(
          { err: error },
          "the heartbeat's thread ended; the event loop renews the leases meanwhile",
        );
        renewFromLoop();
      },
    });
  };

  const isThreadBeating = (now: number): boolean => {
    const beats = Atomics.load(counters, BEATS);
    if (beats !== seenBeats) beatAt = now;
    seenBeats = beats;
    return thread !== undefined && beats > 0 && now - beatAt <= MISSED_BEATS * heartbeatMs;
  };

  const renew = (): void => {
    if (isThreadBeating(performance.now())) thread?.renew();
    else renewFromLoop();
  };

  const timer = setInterval(() => {
    const now = performance.now();
    const stoodStillMs = now - tickedAt - heartbeatMs;
    tickedAt = now;
    Atomics.add(counters, SIGNS_OF_LIFE, 1);
    if (held.size > 0) startThread();
    if (stoodStillMs > leaseSeconds * 1_000) {
      const seconds = Math.round(stoodStillMs / 1_000);
      logger.warn({ seconds }, "the event loop stood still for longer than a lease");
      // The thread may have given up on this loop, or have stood still with it.
      beatAt = now;
      renew();
    } else if (!isThreadBeating(now) || slots.size > SLOTS) renewFromLoop();
  }, heartbeatMs);
  timer.unref();

  return {
    begun(execution) {
      held.set(execution.runId, execution);
      slots.set(execution, heldAttempts.add(execution));
      startThread();
    },
    ended(execution) {
      if (held.get(execution.runId) === execution) held.delete(execution.runId);
      const slot = slots.get(execution);
      if (slot !== undefined) heldAttempts.remove(slot);
      slots.delete(execution);
    },
    renew,
    async close() {
      closed = true;
      clearInterval(timer);
      await thread?.close();
      await Promise.all([renewing, standingIn]);
      await database.close();
    },
  };
};
