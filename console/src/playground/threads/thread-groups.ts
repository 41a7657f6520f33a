import { DAY_MS, daysUntil, HOUR_MS } from "../../parts/relative-time.ts";
import type { ListedThread } from "./listed-threads.ts";

/** A heading, or a thread below it. */
export type ListRow = { kind: "day"; label: string } | { kind: "thread"; thread: ListedThread };

const WEEK_DAYS = 7;
const month = new Intl.DateTimeFormat("en", { month: "long", year: "numeric" });

const startOfDay = (time: number): number => new Date(time).setHours(0, 0, 0, 0);
const startOfMonth = (time: number): number => new Date(startOfDay(time)).setDate(1);

/** Noon, because days with a change of the clock have 23 or 25 hours. */
const daysBefore = (now: number, days: number): number =>
  startOfDay(startOfDay(now) + DAY_MS / 2 - days * DAY_MS);

/** A time in the future counts as today. */
interface Group {
  /** E.g. `Today`, `Yesterday`, `Last 7 days`, `October 2026`. */
  label: string;
  /** Milliseconds since 1970. */
  start: number;
}

const groupOf = (time: number, now: number): Group => {
  if (Number.isNaN(time)) return { label: "Unknown day", start: Infinity };
  const recent: readonly Group[] = [
    { label: "Today", start: daysBefore(now, 0) },
    { label: "Yesterday", start: daysBefore(now, 1) },
    { label: "Last 7 days", start: daysBefore(now, WEEK_DAYS) },
  ];
  return (
    recent.find(({ start }) => time >= start) ?? { label: month.format(time), start: startOfMonth(time) }
  );
};

/** @param threads newest first */
export const rowsOf = (threads: readonly ListedThread[], now: number): ListRow[] => {
  const rows: ListRow[] = [];
  let group: Group | undefined;
  for (const thread of threads) {
    const time = Date.parse(thread.updated_at);
    if (group === undefined || !(time >= group.start)) {
      const next = groupOf(time, now);
      if (next.label !== group?.label) rows.push({ kind: "day", label: next.label });
      group = next;
    }
    rows.push({ kind: "thread", thread });
  }
  return rows;
};

const MINUTE_MS = 60_000;

/** E.g. `now`, `5 min`, `3 h`, and from 24 hours on by the calendar, as the headings: `12 d`. */
export const ageText = (iso: string, now: number): string => {
  const time = Date.parse(iso);
  const age = now - time;
  const days = age >= DAY_MS ? -daysUntil(time, now) : 0;
  if (days > 0) return `${days} d`;
  if (age >= HOUR_MS) return `${Math.floor(age / HOUR_MS)} h`;
  return age >= MINUTE_MS ? `${Math.floor(age / MINUTE_MS)} min` : "now";
};
