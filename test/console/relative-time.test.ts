import { describe, expect, test } from "vitest";
import { daysUntil, relativeText } from "../../console/src/parts/relative-time.ts";

/** How a time is called at another one; both have their offsets. */
const called = (time: string, now: string, timeZone = "UTC"): string =>
  relativeText(Date.parse(time), Date.parse(now), timeZone);

describe("a relative time", () => {
  test("counts seconds, minutes and hours, and never 60 seconds, 60 minutes or 24 hours", () => {
    const now = "2026-11-28T12:00:00Z";
    expect(
      [
        "2026-11-28T12:00:00.400Z",
        "2026-11-28T12:00:59.700Z",
        "2026-11-28T11:59:31Z",
        "2026-11-28T12:59:40Z",
        "2026-11-28T12:20:00Z",
        "2026-11-28T02:00:00Z",
        "2026-11-29T11:20:00Z",
        "2026-11-29T11:40:00Z",
      ].map((time) => called(time, now)),
    ).toEqual([
      "now",
      "in 1 minute",
      "29 seconds ago",
      "in 1 hour",
      "in 20 minutes",
      "10 hours ago",
      "in 23 hours",
      "tomorrow",
    ]);
  });

  test("counts days of the calendar: seen from a Saturday, a Monday is not tomorrow", () => {
    const monday = "2026-11-30T08:00:00Z";
    expect(called(monday, "2026-11-27T23:59:59Z")).toBe("in 3 days");
    expect(called(monday, "2026-11-28T00:00:00Z")).toBe("in 2 days");
    expect(called(monday, "2026-11-28T23:30:00Z")).toBe("in 2 days");
    expect(called(monday, "2026-11-29T00:00:00Z")).toBe("tomorrow");
    expect(called(monday, "2026-11-29T09:00:00Z")).toBe("in 23 hours");
    expect(called("2026-11-28T23:30:00Z", monday)).toBe("2 days ago");
    expect(called("2026-11-29T00:30:00Z", monday)).toBe("yesterday");
  });

  test("counts by hours across midnight, as long as there are fewer than 24", () => {
    expect(called("2026-11-29T00:05:00Z", "2026-11-28T23:55:00Z")).toBe("in 10 minutes");
    expect(called("2026-11-29T20:00:00Z", "2026-11-28T23:55:00Z")).toBe("in 20 hours");
  });

  test("counts the midnights of the zone in which it is shown", () => {
    const [monday, saturday] = ["2026-11-29T19:00:00Z", "2026-11-28T10:00:00Z"];
    expect(called(monday, saturday, "Pacific/Auckland")).toBe("in 2 days");
    expect(called(monday, saturday, "Europe/Berlin")).toBe("tomorrow");
    expect(called(monday, saturday, "America/Los_Angeles")).toBe("tomorrow");
  });

  test("counts days of 23 and of 25 hours as one", () => {
    const zone = "Europe/Berlin";
    expect(called("2026-03-29T12:00:00+02:00", "2026-03-28T12:00:00+01:00", zone)).toBe("in 23 hours");
    expect(called("2026-03-30T12:00:00+02:00", "2026-03-28T12:00:00+01:00", zone)).toBe("in 2 days");
    expect(called("2026-10-25T12:00:00+01:00", "2026-10-24T12:00:00+02:00", zone)).toBe("tomorrow");
    expect(called("2026-10-26T00:30:00+01:00", "2026-10-24T23:30:00+02:00", zone)).toBe("in 2 days");
    // This day has 25 hours.
    expect(called("2026-10-25T23:45:00+01:00", "2026-10-25T00:15:00+02:00", zone)).toBe("in 25 hours");
    expect(daysUntil(Date.parse("2026-12-31T23:00:00Z"), Date.parse("2026-12-31T22:59:00Z"), zone)).toBe(1);
  });
});
