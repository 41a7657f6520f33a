import type { Logger } from "../../../platform/lib/logger.ts";
import type { CronRow } from "../../../platform/database/tables.ts";

/** A later run replaces missed runs. */
const MISSED_SECONDS = 60;
/** In crons; a full map is cleared. */
const REMEMBERED_AT_MOST = 10_000;

export interface Outcome {
  cron: Pick<CronRow, "cron_id"> & { next_run_date: Date; now: Date };
  error: string | null;
  /** Undefined if a run was created, or if the cron has ended. */
  leftOut: "busy" | "waits" | "full" | "too often" | undefined;
  isRun: boolean;
}

const WHY_LEFT_OUT = {
  busy: "a cron was due while its thread was busy, so nothing is run",
  waits: "a cron was due while its former run still waits for its thread, so nothing is run",
  "too often": "a cron was due while its caller has no run left in this minute, so nothing is run",
  full: "a cron was due while too many runs wait on its thread or for its creator, so nothing is run",
};

/** A cron of every minute on a busy thread would fill the log, so a skipped run is logged once. */
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
      if (!isLogged) logger.info(fields, `${WHY_LEFT_OUT[leftOut]}; logged once, until it runs again`);
    } else if (isRun && cron.now.getTime() - cron.next_run_date.getTime() > MISSED_SECONDS * 1_000) {
      logger.info(
        fields,
        "a cron was due while no server ran it; one run makes up for all times that were missed",
      );
    }
  };
};
