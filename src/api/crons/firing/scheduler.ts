import { logFailure } from "../../../platform/database/outages.ts";
import { createBackOff } from "../../../platform/lib/back-off.ts";
import type { Logger } from "../../../platform/lib/logger.ts";
import { outsideTraces } from "../../../platform/telemetry/telemetry.ts";
import { LOCKED_ELSEWHERE_MS, type Firing } from "./firing.ts";

export interface Scheduler {
  open(): void;
  wake(): void;
  close(): Promise<void>;
}

/** After a clock correction, a machine's sleep or another process's death, a cron is late by this at most. */
const POLL_EVERY_MS = 1_000;
const MINUTE_MS = 60_000;

/**
 * Schedules name full minutes only, so a poll at each full minute also finds crons created at other processes in time.
 * Without crons, this poll is the only cost.
 */
export const createScheduler = (firing: Pick<Firing, "poll" | "fire">, logger: Logger): Scheduler => {
  const logFailed = logFailure(logger, "crons could not be run");
  const afterFailure = createBackOff();
  const whileLockedElsewhere = createBackOff({ firstMs: LOCKED_ELSEWHERE_MS, longestMs: POLL_EVERY_MS });
  let opened = false;
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  let working: Promise<void> | undefined;
  let wanted = false;

  /** Returns the milliseconds until the next poll. */
  const work = async (): Promise<number> => {
    const { now, due } = await firing.poll();
    if (due !== null && due <= now) {
      if (!(await firing.fire(() => closed))) return whileLockedElsewhere.next();
      whileLockedElsewhere.reset();
      return 0;
    }
    whileLockedElsewhere.reset();
    const untilFullMinute = MINUTE_MS - (now.getTime() % MINUTE_MS);
    if (due === null) return untilFullMinute;
    return Math.min(due.getTime() - now.getTime(), untilFullMinute, POLL_EVERY_MS);
  };

  const round = (): void => {
    clearTimeout(timer);
    if (!opened || closed) return;
    wanted = true;
    working ??= (async () => {
      let pauseMs = 0;
      while (wanted && !closed) {
        wanted = false;
        try {
          pauseMs = await work();
          afterFailure.reset();
        } catch (error) {
          logFailed(error);
          pauseMs = afterFailure.next();
        }
      }
      working = undefined;
      if (!closed) timer = setTimeout(round, pauseMs);
    })();
  };

  return {
    open() {
      opened = true;
      round();
    },
    // A request wakes it, and later runs of crons are not that request's.
    wake: () => outsideTraces(round),
    async close() {
      closed = true;
      clearTimeout(timer);
      await working;
    },
  };
};
