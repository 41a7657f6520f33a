import { logFailure } from "../../../platform/database/outages.ts";
import { createBackOff } from "../../../platform/lib/back-off.ts";
import type { Logger } from "../../../platform/lib/logger.ts";
import type { Firing } from "./firing.ts";

export interface SchedulerParts {
  firing: Pick<Firing, "poll" | "fire">;
  logger: Logger;
}

/** Fires crons of this process's graphs from `open` on. */
export interface Scheduler {
  open(): void;
  /** A cron was made or changed here. */
  wake(): void;
  /** Waits for the crons that are being fired. */
  close(): Promise<void>;
}

/**
 * While there are crons the clock of the database is looked at so often, since it may be put right, this machine may have
 * slept, and a process that held due crons may have died: each is late by this at most.
 */
const POLL_EVERY_MS = 1_000;
const MINUTE_MS = 60_000;
/** Others hold what is due: they fire it in some 50 ms, or die. */
const HELD_ELSEWHERE_MS = 50;

/**
 * Sleeps until a cron is due. No signal tells of a cron that another process makes: schedules know full minutes only, so
 * whoever looks at each full minute is there in time for all that were made before it. Where there are no crons, that
 * look is all that this costs.
 */
export const createScheduler = ({ firing, logger }: SchedulerParts): Scheduler => {
  const failed = logFailure(logger, "crons could not be run");
  const failing = createBackOff();
  const held = createBackOff({ firstMs: HELD_ELSEWHERE_MS, longestMs: POLL_EVERY_MS });
  let opened = false;
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  let working: Promise<void> | undefined;
  let wanted = false;

  /** In how many milliseconds to look again. */
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
