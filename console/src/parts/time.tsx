import { useEffect, useMemo, useState } from "react";
import { relativeText } from "./relative-time.ts";

const absolute = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

const UPDATE_MS = 10_000;

/** Undefined if the browser does not know the zone: the server may know newer ones. */
const knownZone = (timeZone: string | undefined): string | undefined => {
  try {
    if (timeZone !== undefined) new Intl.DateTimeFormat("en", { timeZone });
    return timeZone;
  } catch {
    return undefined;
  }
};

const inWords = (date: Date, zone: string | undefined): string =>
  relativeText(date.getTime(), Date.now(), zone);

const exactIn = (date: Date, timeZone: string): string =>
  `${date.toLocaleString("en-GB", { timeZone, dateStyle: "medium", timeStyle: "medium" })} ${timeZone}`;

interface TimeProps {
  iso: string;
  /** The zone whose days count, if the time is shown beside it. Undefined: that of the browser. */
  timeZone?: string;
}

export const Time = ({ iso, timeZone }: TimeProps) => {
  const [, renew] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => renew((count) => count + 1), UPDATE_MS);
    return () => clearInterval(timer);
  }, []);
  const zone = useMemo(() => knownZone(timeZone), [timeZone]);
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return <span>{iso}</span>;
  return (
    <time dateTime={iso} title={zone === undefined ? absolute.format(date) : exactIn(date, zone)}>
      {inWords(date, zone)}
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
