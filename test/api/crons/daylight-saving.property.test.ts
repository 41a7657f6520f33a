import fc from "fast-check";
import { expect, test } from "vitest";
import { readSchedule } from "../../../src/api/crons/schedule.ts";

/**
 * Schedules around changes of clocks, against a model that lists each minute. Many schedules:
 * SCHEDULES=5000 npx vitest run test/api/crons/daylight-saving
 */
const SCHEDULES = Number(process.env["SCHEDULES"] ?? 8);
/** Fixed for the usual number, so that the usual test is repeatable. */
const SEED = process.env["SCHEDULES"] === undefined ? { seed: 40 } : {};

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** In some zones clocks change by half an hour or by two, at midnight, into another day, or during Ramadan. */
const ZONES: readonly [zone: string, year: number][] = [
  ["Europe/Berlin", 2026],
  ["America/New_York", 2027],
  ["Australia/Lord_Howe", 2026],
  ["America/Sao_Paulo", 2018],
  ["Africa/Cairo", 2026],
  ["Asia/Beirut", 2026],
  ["America/Santiago", 2026],
  ["America/Nuuk", 2026],
  ["Antarctica/Troll", 2026],
  ["Africa/Casablanca", 2026],
];

interface Change {
  at: number;
  /** Of the clock before UTC, in milliseconds. */
  before: number;
  after: number;
}

const changesOf = (timeZone: string, year: number): Change[] => {
  const clock = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" });
  const offsetAt = (time: number): number => Date.parse(`${clock.format(time).replace(" ", "T")}Z`) - time;
  const changes: Change[] = [];
  for (let time = Date.UTC(year, 0, 1); time < Date.UTC(year + 1, 0, 1); time += DAY_MS) {
    const [before, after] = [offsetAt(time), offsetAt(time + DAY_MS)];
    if (before === after) continue;
    let [earlier, at] = [time, time + DAY_MS];
    while (at - earlier > MINUTE_MS) {
      const middle = earlier + Math.floor((at - earlier) / 2 / MINUTE_MS) * MINUTE_MS;
      if (offsetAt(middle) === before) earlier = middle;
      else at = middle;
    }
    changes.push({ at, before, after });
  }
  return changes;
};

interface Choice {
  text: string;
  values: number[];
}

const upTo = (last: number): number[] => Array.from({ length: last + 1 }, (_, value) => value);

/** A field as a list, a range that may wrap, a step, or everything. */
const fieldOf = (last: number): fc.Arbitrary<Choice> => {
  const all = upTo(last);
  const value = fc.integer({ min: 0, max: last });
  const list = fc
    .uniqueArray(value, { minLength: 1, maxLength: 4 })
    .map((values) => ({ text: values.join(","), values }));
  const range = fc.tuple(value, value).map(([from, to]) => ({
    text: `${from}-${to}`,
    values: all.filter((each) => (from <= to ? each >= from && each <= to : each >= from || each <= to)),
  }));
  const step = fc.tuple(value, fc.integer({ min: 1, max: last + 1 })).map(([from, by]) => ({
    text: `${from}/${by}`,
    values: all.filter((each) => each >= from && (each - from) % by === 0),
  }));
  return fc.oneof(list, range, step, fc.constant({ text: "*", values: all }));
};

const DAYS_AROUND = 2;

const dueTimes = (change: Change, minutes: Choice, hours: Choice, days: Choice): number[] => {
  const { at, before, after } = change;
  const times = new Set<number>();
  const matches = (local: Date): boolean =>
    minutes.values.includes(local.getUTCMinutes()) &&
    hours.values.includes(local.getUTCHours()) &&
    days.values.includes(local.getUTCDay());
  const from = at - DAYS_AROUND * DAY_MS;
  const until = at + DAYS_AROUND * DAY_MS;
  if (hours.values.length === 24) {
    for (let time = from; time < until; time += MINUTE_MS)
      if (matches(new Date(time + (time < at ? before : after)))) times.add(time);
  } else {
    for (let local = from + before - DAY_MS; local < until + after + DAY_MS; local += MINUTE_MS) {
      if (!matches(new Date(local))) continue;
      if (local - before < at) times.add(local - before);
      else times.add(Math.max(at, local - after));
    }
  }
  return [...times].filter((time) => time > from && time < until).sort((a, b) => a - b);
};

test.each(ZONES)(
  "in %s a schedule of fixed times runs at each of them once, and one of every hour by elapsed time",
  (zone, year) => {
    const changes = changesOf(zone, year);
    expect(changes.length).toBeGreaterThan(1);
    fc.assert(
      fc.property(
        fc.constantFrom(...changes),
        fieldOf(59),
        // Mostly the hours in which clocks change.
        fc.oneof(
          fieldOf(23),
          fc.constantFrom(0, 1, 2, 23).map((hour) => ({ text: `${hour}`, values: [hour] })),
        ),
        fieldOf(6),
        (change, minutes, hours, days) => {
          const schedule = readSchedule(`${minutes.text} ${hours.text} * * ${days.text}`, zone);
          const expected = dueTimes(change, minutes, hours, days).map((time) => new Date(time).toISOString());
          const found: string[] = [];
          const until = change.at + DAYS_AROUND * DAY_MS;
          for (
            let due = schedule.next(new Date(change.at - DAYS_AROUND * DAY_MS));
            due !== undefined && due.getTime() < until;
            due = schedule.next(due)
          )
            found.push(due.toISOString());
          expect(found).toEqual(expected);
        },
      ),
      { numRuns: SCHEDULES, ...SEED },
    );
  },
);
