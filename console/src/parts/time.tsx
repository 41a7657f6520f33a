import { useEffect, useState } from "react";

const UNITS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const absolute = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

const UPDATE_MS = 10_000;

const inWords = (date: Date): string => {
  const seconds = (date.getTime() - Date.now()) / 1_000;
  const [unit, length] = UNITS.find(([, each]) => Math.abs(seconds) >= each) ?? ["second", 1];
  return relative.format(Math.round(seconds / length), unit);
};

export const Time = ({ iso }: { iso: string }) => {
  const [, renew] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => renew((count) => count + 1), UPDATE_MS);
    return () => clearInterval(timer);
  }, []);
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return <span>{iso}</span>;
  return (
    <time dateTime={iso} title={absolute.format(date)}>
      {inWords(date)}
    </time>
  );
};

/** Local time with seconds, e.g. `27 Nov 2026, 14:03:22`; the text itself if it is no time. */
export const exactTime = (iso: string): string => {
  const date = new Date(iso);
  return Number.isNaN(date.getTime()) ? iso : absolute.format(date);
};

/** E.g. `340 ms`, `2.4 s`, `3 min 5 s`, `2 h 4 min`. */
export const durationText = (milliseconds: number): string => {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1_000).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1_000);
  if (seconds >= 3_600) return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
};

/** Local time, e.g. `2026-11-22T16:30`; empty if `iso` is invalid. */
export const localTimeOf = (iso: string | null | undefined): string => {
  const date = new Date(iso ?? "");
  if (Number.isNaN(date.getTime())) return "";
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
};
