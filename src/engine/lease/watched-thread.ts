import { url as inspectorUrl } from "node:inspector";
import { inSchema } from "../../platform/database/schema.ts";
import { createBackOff } from "../../platform/lib/back-off.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { RENEW } from "../queue/sql/renew.ts";
import {
  BEATS,
  COUNTERS,
  SIGNS_OF_LIFE,
  startHeartbeatThread,
  type HeartbeatThread,
  type ThreadReport,
} from "./heartbeat-thread.ts";

export interface WatchedThreadParts {
  connectionString: string;
  applicationName: string;
  schema: string;
  preparedStatements: boolean;
  leaseSeconds: number;
  heartbeatMs: number;
  timeoutMs: number;
  /** 0: there is no thread. */
  blockedLoopSeconds: number;
  endsBlockedProcess: boolean;
  /** The attempts whose leases it renews; see createHeldAttempts. */
  held: Int32Array;
  /** What the thread executes. */
  entry: URL;
  onReport(report: ThreadReport): void;
  /** The thread ended, though nobody closed it. */
  onDeath(): void;
  logger: Logger;
}

/** A thread that ended is started anew after this time; meanwhile the event loop renews. */
const RESTART_MS = 30_000;
/** Pauses after failed renewals that the thread is given; the last is as long as it gets between two heartbeats. */
const RETRIES = 6;
/** Heartbeats without one of the thread after which the event loop does its work. */
const MISSED_BEATS = 2;

/** The thread that renews leases, as the event loop sees it: whether it beats, and when it may be started again. */
export const createWatchedThread = (parts: WatchedThreadParts) => {
  const { heartbeatMs, blockedLoopSeconds, preparedStatements, logger } = parts;
  const counters = new Int32Array(new SharedArrayBuffer(COUNTERS * Int32Array.BYTES_PER_ELEMENT));
  let thread: HeartbeatThread | undefined;
  let startAt = blockedLoopSeconds === 0 ? Infinity : 0;
  let closed = false;
  let seenBeats = 0;
  let beatAt = 0;

  return {
    /** Does nothing if it is there, or ended a moment ago. */
    start(): void {
      if (thread !== undefined || closed || performance.now() < startAt) return;
      seenBeats = 0;
      beatAt = performance.now();
      counters.fill(0);
      const retries = createBackOff({ longestMs: heartbeatMs });
      thread = startHeartbeatThread({
        setup: {
          connectionString: parts.connectionString,
          applicationName: parts.applicationName,
          statement: {
            text: inSchema(parts.schema)(RENEW),
            name: preparedStatements ? "renew" : undefined,
          },
          timeoutMs: parts.timeoutMs,
          leaseSeconds: parts.leaseSeconds,
          heartbeatMs,
          retriesMs: Array.from({ length: RETRIES }, () => retries.next()),
          blockedLoopMs: blockedLoopSeconds * 1_000,
          // A debugger may have stopped the loop.
          endsProcess: parts.endsBlockedProcess && inspectorUrl() === undefined,
          held: parts.held,
          counters,
        },
        entry: parts.entry,
        onReport: (report) => parts.onReport(report),
        onDeath(error) {
          thread = undefined;
          if (closed) return;
          startAt = performance.now() + RESTART_MS;
          logger.error(
            { err: error },
            "the heartbeat's thread ended; the event loop renews the leases meanwhile",
          );
          parts.onDeath();
        },
      });
    },
    /** Whether it renews, as far as can be seen at this moment (performance.now()). */
    isBeating(now: number): boolean {
      const beats = Atomics.load(counters, BEATS);
      if (beats !== seenBeats) beatAt = now;
      seenBeats = beats;
      return thread !== undefined && beats > 0 && now - beatAt <= MISSED_BEATS * heartbeatMs;
    },
    /** It may have given up on this loop, or have stood still with it: its beats are counted from now. */
    forgive(now: number): void {
      beatAt = now;
    },
    /** The loop lives. */
    signOfLife(): void {
      Atomics.add(counters, SIGNS_OF_LIFE, 1);
    },
    /** Not at the next heartbeat, but now. */
    renew(): void {
      thread?.renew();
    },
    /** It is not started again. */
    async close(): Promise<void> {
      closed = true;
      await thread?.close();
    },
  };
};
