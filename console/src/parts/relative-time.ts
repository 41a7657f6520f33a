const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** The unit, its length, and the count from which the next one is used. */
const UNITS = [
  ["second", SECOND_MS, 60],
  ["minute", MINUTE_MS, 60],
  ["hour", HOUR_MS, 24],
] as const;

/** Days since 1970 on the calendar of a zone, where a day may have 23 or 25 hours. */
const dayOf = (time: number, timeZone: string | undefined): number => {
  const parts = new Intl.DateTimeFormat("en", {
    ...(timeZone !== undefined && { timeZone }),
    ...{ year: "numeric", month: "numeric", day: "numeric" },
  }).formatToParts(time);
  const valueOf = (name: string): number => Number(parts.find(({ type }) => type === name)?.value);
  return Math.round(Date.UTC(valueOf("year"), valueOf("month") - 1, valueOf("day")) / DAY_MS);
};

/**
 * How many midnights are between two times, negative if `time` is the earlier one.
 * @param timeZone undefined: that of the browser
 */
export const daysUntil = (time: number, now: number, timeZone?: string): number =>
  dayOf(time, timeZone) - dayOf(now, timeZone);

/**
 * E.g. `in 20 minutes`, `23 hours ago`, `tomorrow`, `in 2 days`. From 24 hours on these are days of the calendar:
 * on a Saturday evening, Monday morning is not tomorrow.
 * @param time in milliseconds since 1970, as `now`
 * @param timeZone undefined: that of the browser
 */
export const relativeText = (time: number, now: number, timeZone?: string): string => {
  for (const [unit, length, limit] of UNITS) {
    const count = Math.round((time - now) / length);
    if (Math.abs(count) < limit) return words.format(count, unit);
  }
  const days = daysUntil(time, now, timeZone);
  // The day on which the clocks are set back has 25 hours.
  return days === 0 ? words.format(Math.round((time - now) / HOUR_MS), "hour") : words.format(days, "day");
};
