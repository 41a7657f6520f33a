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
