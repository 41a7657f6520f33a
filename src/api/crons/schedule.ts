import { invalid } from "../../platform/domain/errors.ts";
import { ownField } from "../../platform/lib/names.ts";
import { Cron } from "croner";

/** `@reboot` and intervals are not calendar times. */
const NICKNAMES: Record<string, string> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};

interface Field {
  called: string;
  first: number;
  last: number;
  /** Names of the values, from `first` on. */
  names?: readonly string[];
  /** For the error's sentence. */
  examples: string;
}

const HOURS_OF_DAY = 24;
const FIELDS: readonly Field[] = [
  { called: "minute", first: 0, last: 59, examples: "0 to 59, such as 5, 0,30, 10-20, */15 or 5/15" },
  { called: "hour", first: 0, last: 23, examples: "0 to 23, such as 9, 9,17, 22-2 or */6" },
  {
    called: "day of month",
    first: 1,
    last: 31,
    examples: "1 to 31, L (the last day), LW (the last weekday) or 15W (the weekday nearest to the 15th)",
  },
  {
    called: "month",
    first: 1,
    last: 12,
    names: "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(" "),
    examples: "1 to 12 or JAN to DEC, such as NOV-FEB or */3",
  },
  {
    called: "day of week",
    first: 0,
    last: 6,
    names: "SUN MON TUE WED THU FRI SAT".split(" "),
    examples:
      "0 to 7 (0 and 7 are Sunday) or SUN to SAT, such as FRI-MON, FRI#2 (the second) or FRIL (the last)",
  },
];
const [, HOUR, DAY_OF_MONTH, , DAY_OF_WEEK] = FIELDS;
const SUNDAY_TOO = 7;

const unreadable = ({ called, examples }: Field, item: string): Error =>
  invalid(`'schedule': the ${called} '${item}' can't be read; write ${examples}.`);

/** `*`, a value, or a range, with or without a step. */
const ITEM = /^(?:[*?]|(?<from>\w+)(?:-(?<to>\w+))?)(?:\/(?<step>\d+))?$/;

/** Undefined: none of the field's values. */
const valueOf = (field: Field, text: string): number | undefined => {
  const named = field.names?.indexOf(text) ?? -1;
  if (named >= 0) return field.first + named;
  const value = /^\d+$/.test(text) ? Number(text) : NaN;
  const last = field === DAY_OF_WEEK ? SUNDAY_TOO : field.last;
  return value >= field.first && value <= last ? value : undefined;
};

/** A range may wrap: `22-2` is 22, 23, 0, 1, 2. A start with a step goes on to the end of the field, as in croniter. */
const valuesOf = (field: Field, item: string): number[] => {
  const match = ITEM.exec(item);
  if (match === null) throw unreadable(field, item);
  const { from, to, step } = match.groups ?? {};
  const { first, last } = field;
  const size = last - first + 1;
  const by = Number(step ?? 1);
  if (by < 1 || by > size) {
    throw invalid(`'schedule': the step of '${item}' must be 1 to ${size} for the ${field.called}.`);
  }
  const start = from === undefined ? first : valueOf(field, from);
  const end = to !== undefined ? valueOf(field, to) : from === undefined || step !== undefined ? last : start;
  if (start === undefined || end === undefined) throw unreadable(field, item);
  // A week that begins with 7 begins with Sunday; one that ends with 7 ends with it.
  const begin = start > last ? first : start;
  const until = start > last && end > last ? begin : end < begin ? end + size : end;
  const count = Math.floor((until - begin) / by) + 1;
  return Array.from({ length: count }, (_, index) => ((begin + index * by - first) % size) + first);
};

/** Returns `L`, `LW` and `15W` unchanged, because croner reads them. */
const specialDay = (field: Field, item: string, isAlone: boolean): string | undefined => {
  if (item === "L" || (item === "LW" && isAlone)) return item;
  const [, day] = /^(\d+)W$/.exec(item) ?? [];
  return day === undefined || valueOf(field, day) === undefined ? undefined : item;
};

/** `FRI#2`, `FRI#L`, `FRIL`; croniter writes `L5`. */
const ordinalOf = (item: string): { days: string; ordinal: string } => {
  const [, last] = /^L(\w+)$/.exec(item) ?? [];
  if (last !== undefined) return { days: last, ordinal: "#L" };
  const [, days, nth, isLast] = /^(.+?)(?:(#[1-5L])|(L))$/.exec(item) ?? [];
  if (days === undefined || /^[*?]$/.test(days)) return { days: item, ordinal: "" };
  return { days, ordinal: isLast === undefined ? nth! : "#L" };
};

const readField = (field: Field, text: string): string => {
  // Croner's sign for "both the day of month and the day of week".
  const sign = field === DAY_OF_WEEK && text.startsWith("+") ? "+" : "";
  const items = text.slice(sign.length).split(",");
  if (items.length === 1 && /^[*?]$/.test(items[0]!)) return `${sign}*`;
  const read = items.flatMap((item): string[] => {
    if (field === DAY_OF_MONTH) {
      const special = specialDay(field, item, items.length === 1);
      if (special !== undefined) return [special];
    }
    const { days, ordinal } = field === DAY_OF_WEEK ? ordinalOf(item) : { days: item, ordinal: "" };
    return valuesOf(field, days).map((value) => `${value}${ordinal}`);
  });
  return sign + [...new Set(read)].join(",");
};

/** The schedule in the dialect of croner, with lists instead of ranges and steps. Throws `invalid`. */
const readFields = (schedule: string): { text: string; isEveryHour: boolean } => {
  const given = schedule.trim();
  const texts = (ownField(NICKNAMES, given.toLowerCase()) ?? given).toUpperCase().split(/\s+/);
  // Some servers read the seconds first, others last.
  if (texts.length !== FIELDS.length) {
    throw invalid(
      "'schedule': must have five fields (minute, hour, day of month, month, day of week; no seconds, no year) or " +
        `be one of ${Object.keys(NICKNAMES).join(", ")}.`,
    );
  }
  const fields = FIELDS.map((field, index) => readField(field, texts[index]!));
  const hours = fields[FIELDS.indexOf(HOUR!)]!;
  return {
    text: fields.join(" "),
    isEveryHour: hours === "*" || hours.split(",").length === HOURS_OF_DAY,
  };
};

const SECOND_MS = 1000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** Local times are dates whose UTC fields are those of the zone's clock. */
interface Zone {
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
const zoneOf = (timezone: string): Zone | undefined => {
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

interface Schedule {
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
