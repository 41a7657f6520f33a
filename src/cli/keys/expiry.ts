import { InvalidArgumentError } from "commander";

const SECONDS_OF: ReadonlyMap<string, number> = new Map([
  ["m", 60],
  ["h", 3_600],
  ["d", 86_400],
  ["w", 7 * 86_400],
  ["y", 365 * 86_400],
]);
const DURATION = /^(\d{1,6})([mhdwy])$/;

/**
 * Seconds from now of a duration (`90m`, `12h`, `30d`, `2w`, `1y`) or an ISO 8601 time; undefined for `never`. @throws
 * InvalidArgumentError
 */
export const parseExpiry = (text: string, now = new Date()): number | undefined => {
  if (text === "never") return undefined;
  const [, count, unit = ""] = DURATION.exec(text) ?? [];
  if (count !== undefined) return Number(count) * (SECONDS_OF.get(unit) ?? 0);
  const time = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : NaN;
  if (Number.isNaN(time)) {
    throw new InvalidArgumentError("Use a duration or a time: 90m, 12h, 30d, 2w, 1y, 2027-01-31, or never.");
  }
  return (time - now.getTime()) / 1_000;
};
