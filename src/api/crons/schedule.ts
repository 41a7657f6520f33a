import { Cron } from "croner";
import { invalid } from "../../platform/domain/errors.ts";
import { readFields } from "./schedule-fields.ts";
import { zoneOf } from "./time-zones.ts";

export interface Schedule {
  /** A full minute; undefined if the schedule is never due again. */
  next(after: Date): Date | undefined;
}

/**
 * Without a time zone, the schedule is in UTC. Decision 029 says what changes of clocks do to a schedule.
 * @throws `invalid`
 */
export const readSchedule = (schedule: string, timezone: string | null): Schedule => {
  const { text, isEveryHour } = readFields(schedule);
  const zone = timezone === null ? undefined : zoneOf(timezone);
  if (timezone !== null && zone === undefined) {
    throw invalid(`'timezone': '${timezone}' is no IANA time zone, such as 'Europe/Berlin'.`);
  }
  if (zone === undefined || isEveryHour) {
    const cron = new Cron(text, { mode: "5-part", paused: true, timezone: timezone ?? "UTC" });
    return { next: (after) => cron.nextRun(after) ?? undefined };
  }
  // Croner skips a missing time unless minute and hour have one value each, and never moves one to another day.
  const cron = new Cron(text, { mode: "5-part", paused: true, utcOffset: 0 });
  return {
    next(after) {
      for (let local = cron.nextRun(zone.localOf(after)); local !== null; local = cron.nextRun(local)) {
        const due = zone.firstAt(local);
        if (due > after) return due;
      }
      return undefined;
    },
  };
};
