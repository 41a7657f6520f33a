import { logFailure } from "../../../platform/database/outages.ts";
import { createBackOff } from "../../../platform/lib/back-off.ts";
import type { Logger } from "../../../platform/lib/logger.ts";
import type { Firing } from "./firing.ts";

export interface Scheduler {
  open(): void;
  wake(): void;
  close(): Promise<void>;
}

/**
 * The database's clock may be corrected, this machine may have slept, or a process with due crons may have died. Each
 * makes a cron late by this at most.
 */
const POLL_EVERY_MS = 1_000;
const MINUTE_MS = 60_000;
/** Another process fires its crons in about 50 ms, or dies. */
const HELD_ELSEWHERE_MS = 50;

/**
 * There is no signal for crons of other processes: schedules have full minutes only, so a poll at each full minute is
 * in time. Without crons that poll is the only cost.
 */
export const createScheduler = (firing: Pick<Firing, "poll" | "fire">, logger: Logger): Scheduler => {
  const failed = logFailure(logger, "crons could not be run");
  const failing = createBackOff();
  const held = createBackOff({ firstMs: HELD_ELSEWHERE_MS, longestMs: POLL_EVERY_MS });
  let opened = false;
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  let working: Promise<void> | undefined;
  let wanted = false;

  /** The milliseconds until the next poll. */
  const work = async (): Promise<number> => {
    const { now, due } = await firing.poll();
    if (due !== null && due <= now) {
      if (!(await firing.fire(() => closed))) return held.next();
      held.reset();
      return 0;
    }
    held.reset();
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
          failing.reset();
        } catch (error) {
          failed(error);
          pauseMs = failing.next();
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
    wake: round,
    async close() {
      closed = true;
      clearTimeout(timer);
      await working;
    },
  };
};
