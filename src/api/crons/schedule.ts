import { Cron } from "croner";
import { invalid } from "../../platform/domain/errors.ts";

export interface Schedule {
  /** A full minute; undefined if the schedule is never due again. */
  next(after: Date): Date | undefined;
}

/** `@reboot` and intervals are not calendar times. */
const NAMES = new Set(["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"]);
/** Six fields are refused: some servers read the seconds first, others last. */
const FIELDS = 5;
const IN_WORDS =
  "must have five fields (minute, hour, day of month, month, day of week) or be one of " +
  [...NAMES].join(", ");
/** The prefix of croner's error messages. */
const COMPLAINT_BY = /^\w+: /;

const isTimezone = (timezone: string): boolean => {
  // Newer versions of Node accept offsets, but the database may be shared with older ones.
  if (/^[+-]/.test(timezone)) return false;
  try {
    new Intl.DateTimeFormat("en-US", { timeZone: timezone });
    return true;
  } catch {
    return false;
  }
};

/**
 * Without a time zone, the schedule is in UTC; throws `invalid`. A skipped local time moves to the next valid one; a
 * repeated one counts once.
 */
export const readSchedule = (schedule: string, timezone: string | null): Schedule => {
  const text = schedule.trim();
  if (!NAMES.has(text.toLowerCase()) && text.split(/\s+/).length !== FIELDS)
    throw invalid(`'schedule': ${IN_WORDS}.`);
  if (timezone !== null && !isTimezone(timezone)) {
    throw invalid(`'timezone': '${timezone}' is no IANA time zone, such as 'Europe/Berlin'.`);
  }
  let cron: Cron;
  try {
    cron = new Cron(text, { mode: "5-part", paused: true, timezone: timezone ?? "UTC" });
  } catch (error) {
    throw invalid(`'schedule': ${(error as Error).message.replace(COMPLAINT_BY, "").replace(/\.$/, "")}.`);
  }
  return { next: (after) => cron.nextRun(after) ?? undefined };
};
