import { url as inspectorUrl } from "node:inspector";
import { createBackOff } from "../../platform/lib/back-off.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import {
  BEATS,
  COUNTERS,
  SIGNS_OF_LIFE,
  startHeartbeatThread,
  type HeartbeatThread,
  type ThreadReport,
  type ThreadSetup,
} from "./heartbeat-thread.ts";

const RESTART_MS = 30_000;
/** Pauses after failed renewals; the last equals the time between two heartbeats. */
const RETRIES = 6;
/** The event loop renews if the thread misses this many heartbeats. */
const MISSED_BEATS = 2;

/** `onDeath`: the event loop has to renew. */
export const createWatchedThread = (
  setup: Omit<ThreadSetup, "retriesMs" | "counters">,
  entry: URL,
  logger: Logger,
  { onReport, onDeath }: { onReport(report: ThreadReport): void; onDeath(): void },
) => {
  const { heartbeatMs, blockedLoopMs } = setup;
  const counters = new Int32Array(new SharedArrayBuffer(COUNTERS * Int32Array.BYTES_PER_ELEMENT));
  let thread: HeartbeatThread | undefined;
  let startAt = blockedLoopMs === 0 ? Infinity : 0;
  let closed = false;
  let seenBeats = 0;
  let beatAt = 0;

  return {
    start(): void {
      if (thread !== undefined || closed || performance.now() < startAt) return;
      seenBeats = 0;
      beatAt = performance.now();
      counters.fill(0);
      const retries = createBackOff({ longestMs: heartbeatMs });
      thread = startHeartbeatThread(
        {
          ...setup,
          retriesMs: Array.from({ length: RETRIES }, () => retries.next()),
          // A debugger may have stopped the loop.
          endsProcess: setup.endsProcess && inspectorUrl() === undefined,
          counters,
        },
        entry,
        onReport,
        (error) => {
          thread = undefined;
          if (closed) return;
          startAt = performance.now() + RESTART_MS;
          logger.error(
            { err: error },
            "the heartbeat thread ended; the event loop renews the leases until the thread is restarted",
          );
          onDeath();
        },
      );
    },
    isBeating(now: number): boolean {
      const beats = Atomics.load(counters, BEATS);
      if (beats !== seenBeats) beatAt = now;
      seenBeats = beats;
      return thread !== undefined && beats > 0 && now - beatAt <= MISSED_BEATS * heartbeatMs;
    },
    /**
     * Restarts the count of missed beats: the thread may have given up on a blocked loop, or stopped with it.
     */
    forgive(now: number): void {
      beatAt = now;
    },
    signOfLife(): void {
      Atomics.add(counters, SIGNS_OF_LIFE, 1);
    },
    renew(): void {
      thread?.renew();
    },
    async close(): Promise<void> {
      closed = true;
      await thread?.close();
    },
  };
};
