const SECOND_MS = 1000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** Local times are dates whose UTC fields are those of the zone's clock. */
export interface Zone {
  localOf(time: Date): Date;
  /** The first moment with this local time; if the clock skips it, the first moment after the gap. */
  firstAt(local: Date): Date;
}

const formatOf = (timezone: string): Intl.DateTimeFormat | undefined => {
  // Newer versions of Node accept offsets, but the database may be shared with older ones.
  if (/^[+-]/.test(timezone)) return undefined;
  try {
    return new Intl.DateTimeFormat("en-US", { timeZone: timezone, timeZoneName: "longOffset" });
  } catch {
    return undefined;
  }
};

/** At the end of a formatted date: `GMT`, `GMT+05:30`. */
const OFFSET = /([+-])(\d+):(\d+)(?::(\d+))?$/;

/** Undefined: no IANA time zone. */
export const zoneOf = (timezone: string): Zone | undefined => {
  const format = formatOf(timezone);
  if (format === undefined) return undefined;
  const offsetAt = (time: number): number => {
    const [, sign, hours = 0, minutes = 0, seconds = 0] = OFFSET.exec(format.format(time)) ?? [];
    const ms = Number(hours) * HOUR_MS + Number(minutes) * MINUTE_MS + Number(seconds) * SECOND_MS;
    return sign === "-" ? -ms : ms;
  };
  const isBehind = (time: number, clock: number): boolean => time + offsetAt(time) < clock;
  return {
    localOf: (time) => new Date(time.getTime() + offsetAt(time.getTime())),
    firstAt(local) {
      const clock = local.getTime();
      const times = [clock - DAY_MS, clock + DAY_MS].map((around) => clock - offsetAt(around));
      const found = times.filter((time) => time + offsetAt(time) === clock);
      if (found.length > 0) return new Date(Math.min(...found));
      let before = Math.min(...times);
      let after = Math.max(...times);
      while (after - before > MINUTE_MS) {
        const middle = before + Math.floor((after - before) / 2 / MINUTE_MS) * MINUTE_MS;
        if (isBehind(middle, clock)) before = middle;
        else after = middle;
      }
      return new Date(after);
    },
  };
};
