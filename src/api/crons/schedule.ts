import { Cron } from "croner";
import { invalid } from "../../platform/domain/errors.ts";

/** When a cron is due. */
export interface Schedule {
  /** The first time after `after`, a full minute; undefined if there is none. */
  next(after: Date): Date | undefined;
}

/** The names that stand for a whole schedule. `@reboot` and intervals are no times of a calendar. */
const NAMES = new Set(["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"]);
const FIELDS = 5;
const IN_WORDS =
  "must have five fields (minute, hour, day of month, month, day of week) or be one of " +
  [...NAMES].join(", ");
/** Of croner's own complaints: what stands before the sentence. */
const COMPLAINT_BY = /^\w+: /;

const isTimezone = (timezone: string): boolean => {
  // Newer versions of Node take offsets, too: a database that several versions share must hold none.
  if (/^[+-]/.test(timezone)) return false;
  try {
    new Intl.DateTimeFormat("en-US", { timeZone: timezone });
    return true;
  } catch {
    return false;
  }
};

/**
 * Reads a schedule of five fields; without a time zone it is in UTC. Seconds are refused: some servers read six fields with
 * the seconds in front, others with the seconds at the end.
 *
 * Where clocks are put forward, a local time that does not exist is replaced by the first one after it; where they are
 * put back, a fixed local time that comes twice counts once, the first time.
 *
 * Throws `invalid` for what can't be read, and an unknown time zone.
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
