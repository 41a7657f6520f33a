import { DAY_MS, HOUR_MS } from "../../parts/time.tsx";
import type { ListedThread } from "./listed-threads.ts";

/** A heading, or a thread below it. */
export type ListRow = { kind: "day"; label: string } | { kind: "thread"; thread: ListedThread };

const WEEK_DAYS = 7;
const month = new Intl.DateTimeFormat("en", { month: "long", year: "numeric" });

const startOfDay = (time: number): number => new Date(time).setHours(0, 0, 0, 0);

/** E.g. `Today`, `Yesterday`, `Last 7 days`, `October 2026`. A time in the future counts as today. */
export const dayOf = (iso: string, now: number): string => {
  const time = Date.parse(iso);
  if (Number.isNaN(time)) return "Unknown day";
  // Rounded, because days with a change of the clock have 23 or 25 hours.
  const days = Math.round((startOfDay(now) - startOfDay(time)) / DAY_MS);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  return days <= WEEK_DAYS ? "Last 7 days" : month.format(time);
};

/** @param threads newest first */
export const rowsOf = (threads: readonly ListedThread[], now: number): ListRow[] => {
  const rows: ListRow[] = [];
  let last: string | undefined;
  for (const thread of threads) {
    const label = dayOf(thread.updated_at, now);
    if (label !== last) rows.push({ kind: "day", label });
    last = label;
    rows.push({ kind: "thread", thread });
  }
  return rows;
};

const UNITS: readonly (readonly [string, number])[] = [
  ["d", DAY_MS],
  ["h", HOUR_MS],
  ["min", 60_000],
];

/** E.g. `now`, `5 min`, `3 h`, `12 d`. */
export const ageText = (iso: string, now: number): string => {
  const age = now - Date.parse(iso);
  const [unit, length] = UNITS.find(([, each]) => age >= each) ?? [];
  return unit === undefined || length === undefined ? "now" : `${Math.floor(age / length)} ${unit}`;
};
