import type { Logger } from "../../../platform/lib/logger.ts";
import type { CronRow } from "../../../platform/database/tables.ts";

/** A run that is so late makes up for times at which no process was there to fire it. */
const MISSED_SECONDS = 60;
/** Ids of crons that ran nothing the last time. Beyond these all are forgotten, and told once more. */
const REMEMBERED_AT_MOST = 10_000;

/** What became of a due time. */
export interface Outcome {
  cron: Pick<CronRow, "cron_id"> & { next_run_date: Date; now: Date };
  /** Why the cron is disabled; null: it is not. */
  error: string | null;
  /** Why nothing is run this time; undefined: something is, or the cron's time is over. */
  leftOut: "busy" | "waits" | "full" | "too often" | undefined;
  isRun: boolean;
}

const WHY_LEFT_OUT = {
  busy: "a cron was due while its thread was busy, so nothing is run",
  waits: "a cron was due while its former run still waits for its thread, so no other is made",
  "too often":
    "a cron was due while its caller has had as many runs in a minute as it may, so nothing is run",
  full: "a cron was due while as many runs wait on its thread, or for who made it, as may, so nothing is run",
};

/**
 * The lines of the log about due times. A cron of every minute would fill it while its thread is busy for a day: what is left
 * out is told once, until the cron runs again.
 */
export const createFiringLog = (logger: Logger) => {
  const leavingOut = new Map<string, Outcome["leftOut"]>();
  return ({ cron, error, leftOut, isRun }: Outcome): void => {
    const { cron_id: cronId } = cron;
    const fields = { cron_id: cronId, due: cron.next_run_date.toISOString() };
    const isLogged = leavingOut.get(cronId) === leftOut;
    leavingOut.delete(cronId);
    if (error !== null) {
      logger.warn({ ...fields, reason: error }, "a cron can't be run and was disabled");
    } else if (leftOut !== undefined) {
      if (leavingOut.size >= REMEMBERED_AT_MOST) leavingOut.clear();
      leavingOut.set(cronId, leftOut);
      if (!isLogged) logger.info(fields, `${WHY_LEFT_OUT[leftOut]}; this is told once, until it runs again`);
    } else if (isRun && cron.now.getTime() - cron.next_run_date.getTime() > MISSED_SECONDS * 1_000) {
      logger.info(
        fields,
        "a cron was due while no server ran it; one run makes up for all times that were missed",
      );
    }
  };
};
