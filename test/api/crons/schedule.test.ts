import { expect, test } from "vitest";
import { readSchedule } from "../../../src/api/crons/schedule.ts";

/** The next `count` times of a schedule after a moment. */
const times = (schedule: string, timezone: string | null, from: string, count: number): string[] => {
  const read = readSchedule(schedule, timezone);
  const found: string[] = [];
  for (let at = read.next(new Date(from)); at !== undefined && found.length < count; at = read.next(at))
    found.push(at.toISOString().replace(":00.000Z", "Z"));
  return found;
};

test("without a time zone a schedule is in UTC, whatever the machine's zone", () => {
  expect(times("30 9 * * *", null, "2026-07-01T12:00:00Z", 1)).toEqual(["2026-07-02T09:30Z"]);
  expect(times("30 9 * * *", "America/New_York", "2026-07-01T12:00:00Z", 1)).toEqual(["2026-07-01T13:30Z"]);
});

test("the next time is after the given one, and a full minute", () => {
  expect(times("* * * * *", null, "2026-07-01T12:00:00.000Z", 1)).toEqual(["2026-07-01T12:01Z"]);
  expect(times("* * * * *", null, "2026-07-01T11:59:59.999Z", 2)).toEqual([
    "2026-07-01T12:00Z",
    "2026-07-01T12:01Z",
  ]);
});

test("a local time that does not exist is replaced by the first one after it", () => {
  // 02:00 becomes 03:00 on March 29.
  expect(times("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2)).toEqual([
    "2026-03-29T01:00Z",
    "2026-03-30T00:30Z",
  ]);
});

test("a local time that occurs twice counts once; an interval continues through both", () => {
  // 03:00 becomes 02:00 on October 25.
  expect(times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2)).toEqual([
    "2026-10-25T00:30Z",
    "2026-10-26T01:30Z",
  ]);
  expect(times("*/30 * * * *", "Europe/Berlin", "2026-10-24T23:45:00Z", 5)).toEqual([
    "2026-10-25T00:00Z",
    "2026-10-25T00:30Z",
    "2026-10-25T01:00Z",
    "2026-10-25T01:30Z",
    "2026-10-25T02:00Z",
  ]);
});

test("a list of local times that do not exist is replaced by one run at the first time after them", () => {
  for (const schedule of ["0,30 2 * * *", "*/30 2 * * *", "0,30 2 28,29 3 *"])
    expect(times(schedule, "Europe/Berlin", "2026-03-28T12:00:00Z", 1)).toEqual(["2026-03-29T01:00Z"]);
  expect(times("0,30 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 3)).toEqual([
    "2026-03-29T01:00Z",
    "2026-03-29T01:30Z",
    "2026-03-30T00:00Z",
  ]);
  expect(times("0,30 2 28 3 *", "Europe/Berlin", "2027-03-01T12:00:00Z", 1)).toEqual(["2027-03-28T01:00Z"]);
});

test("local times of a list that occur twice count once", () => {
  expect(times("0,30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 3)).toEqual([
    "2026-10-25T00:00Z",
    "2026-10-25T00:30Z",
    "2026-10-26T01:00Z",
  ]);
});

test("a time that does not exist at the end of a day moves to the next day", () => {
  // Saturday 23:00 becomes Sunday 00:00 on March 28.
  expect(times("30 23 * * SAT", "America/Nuuk", "2026-03-27T12:00:00Z", 2)).toEqual([
    "2026-03-29T01:00Z",
    "2026-04-05T00:30Z",
  ]);
});

test.each([
  ["5/15 * * * *", ["11-28T00:05", "11-28T00:20", "11-28T00:35", "11-28T00:50", "11-28T01:05"]],
  ["50-10/15 * * * *", ["11-28T00:05", "11-28T00:50", "11-28T01:05", "11-28T01:50", "11-28T02:05"]],
  ["0 22-2 * * *", ["11-28T01:00", "11-28T02:00", "11-28T22:00", "11-28T23:00", "11-29T00:00"]],
  ["0 22-4/2 * * *", ["11-28T02:00", "11-28T04:00", "11-28T22:00", "11-29T00:00", "11-29T02:00"]],
  ["0 9 * * FRI-MON", ["11-28T09:00", "11-29T09:00", "11-30T09:00", "12-04T09:00", "12-05T09:00"]],
  ["0 9 * * sat-sun", ["11-28T09:00", "11-29T09:00", "12-05T09:00", "12-06T09:00", "12-12T09:00"]],
  ["0 0 * * 5-7", ["11-29T00:00", "12-04T00:00", "12-05T00:00", "12-06T00:00", "12-11T00:00"]],
  ["0 0 * * 7-1", ["11-29T00:00", "11-30T00:00", "12-06T00:00", "12-07T00:00", "12-13T00:00"]],
  ["0 0 * * 1/2", ["11-30T00:00", "12-02T00:00", "12-04T00:00", "12-07T00:00", "12-09T00:00"]],
  ["0 0 * * FRI-MON/2", ["11-29T00:00", "12-04T00:00", "12-06T00:00", "12-11T00:00", "12-13T00:00"]],
  ["0 0 1 NOV-feb *", ["12-01T00:00", "01-01T00:00", "02-01T00:00", "11-01T00:00", "12-01T00:00"]],
  ["0 0 25-5/3 * *", ["12-03T00:00", "12-25T00:00", "12-28T00:00", "12-31T00:00", "01-03T00:00"]],
  ["0 0 L * *", ["11-30T00:00", "12-31T00:00", "01-31T00:00", "02-28T00:00", "03-31T00:00"]],
  ["0 0 1,L * *", ["11-30T00:00", "12-01T00:00", "12-31T00:00", "01-01T00:00", "01-31T00:00"]],
  ["0 0 lw * *", ["11-30T00:00", "12-31T00:00", "01-29T00:00", "02-26T00:00", "03-31T00:00"]],
  ["0 0 15W * *", ["12-15T00:00", "01-15T00:00", "02-15T00:00", "03-15T00:00", "04-15T00:00"]],
  ["0 0 * * FRI#2", ["12-11T00:00", "01-08T00:00", "02-12T00:00", "03-12T00:00", "04-09T00:00"]],
  ["0 0 * * MON-TUE#2", ["12-08T00:00", "12-14T00:00", "01-11T00:00", "01-12T00:00", "02-08T00:00"]],
  ["0 0 * * L5", ["12-25T00:00", "01-29T00:00", "02-26T00:00", "03-26T00:00", "04-30T00:00"]],
  ["0 0 * * fril", ["12-25T00:00", "01-29T00:00", "02-26T00:00", "03-26T00:00", "04-30T00:00"]],
  ["0 0 ? * MON", ["11-30T00:00", "12-07T00:00", "12-14T00:00", "12-21T00:00", "12-28T00:00"]],
  ["0 0 1 * +MON", ["02-01T00:00", "03-01T00:00", "11-01T00:00", "05-01T00:00", "01-01T00:00"]],
  [" 0  0\t* * MON\n", ["11-30T00:00", "12-07T00:00", "12-14T00:00", "12-21T00:00", "12-28T00:00"]],
])("%s means the same as in other programs", (schedule, expected) => {
  expect(times(schedule, null, "2026-11-28T00:00:00Z", 5).map((time) => time.slice(5, -1))).toEqual(expected);
});

test.each([
  ["60 * * * *", "the minute '60' can't be read; write 0 to 59, such as"],
  ["1,,2 * * * *", "the minute '' can't be read; write 0 to 59"],
  ["H * * * *", "the minute 'H' can't be read; write 0 to 59"],
  ["0 24 * * *", "the hour '24' can't be read; write 0 to 23"],
  ["0 0 0 * *", "the day of month '0' can't be read; write 1 to 31"],
  ["0 0 L-3 * *", "the day of month 'L-3' can't be read; write 1 to 31, L (the last day)"],
  ["0 0 1-15W * *", "the day of month '1-15W' can't be read; write 1 to 31, L (the last day)"],
  ["0 0 * 13 *", "the month '13' can't be read; write 1 to 12 or JAN to DEC"],
  [
    "0 0 * * MONDAY",
    "the day of week 'MONDAY' can't be read; write 0 to 7 (0 and 7 are Sunday) or SUN to SAT",
  ],
  ["0 0 * * L", "the day of week 'L' can't be read; write 0 to 7"],
  ["0 0 * * FRI#6", "the day of week 'FRI#6' can't be read; write 0 to 7"],
  ["*/90 * * * *", "the step of '*/90' must be 1 to 60 for the minute."],
  ["5/0 * * * *", "the step of '5/0' must be 1 to 60 for the minute."],
  [
    "constructor",
    "must have five fields (minute, hour, day of month, month, day of week; no seconds, no year) or be",
  ],
  ["0 0 9 * * *", "must have five fields"],
])("%s has no clear meaning, and the sentence says what to write", (schedule, sentence) => {
  expect(() => readSchedule(schedule, null)).toThrow(`'schedule': ${sentence}`);
});

test("with both day of month and day of week, either is enough", () => {
  expect(times("0 0 1 * MON", null, "2026-03-28T12:00:00Z", 3)).toEqual([
    "2026-03-30T00:00Z",
    "2026-04-01T00:00Z",
    "2026-04-06T00:00Z",
  ]);
});

test("names can stand for schedules", () => {
  expect(times("@daily", null, "2026-03-28T12:00:00Z", 1)).toEqual(["2026-03-29T00:00Z"]);
  expect(times("@HOURLY", null, "2026-03-28T12:10:00Z", 1)).toEqual(["2026-03-28T13:00Z"]);
});
