import { InvalidArgumentError, Option, type Command } from "commander";
import { createLogger, type Logger } from "../platform/lib/logger.ts";
import { prettyLines } from "../platform/lib/pretty-lines.ts";

/** Lines for people: a command's results are on standard output. */
export const commandLogger = (level: string, note: (text: string) => void): Logger =>
  createLogger({ level, destination: prettyLines({ write: note }) });

export const answeringJson = (command: Command): Command =>
  command.addOption(new Option("--json", "answer as JSON"));

/** One line of JSON. */
export const jsonLine = (value: unknown): string => `${JSON.stringify(value)}\n`;

const LIMIT_AT_MOST = 1_000;

export const limitArgument = (text: string): number => {
  const number = Number(text);
  if (Number.isInteger(number) && number >= 1 && number <= LIMIT_AT_MOST) return number;
  throw new InvalidArgumentError(`Use a number from 1 to ${LIMIT_AT_MOST}.`);
};

const SECONDS: readonly (readonly [unit: string, seconds: number])[] = [
  ["y", 365 * 86_400],
  ["w", 7 * 86_400],
  ["d", 86_400],
  ["h", 3_600],
  ["m", 60],
  ["s", 1],
];

/** Seconds of `90m`, `12h`, `30d`, `2w` or `1y`. */
export const secondsOf = (text: string): number | undefined => {
  const [, count, unit] = /^(\d{1,6})([smhdwy])$/.exec(text) ?? [];
  const [, seconds] = SECONDS.find(([name]) => name === unit) ?? [];
  return seconds === undefined ? undefined : Number(count) * seconds;
};

export const durationText = (milliseconds: number): string => {
  const [unit, seconds] = SECONDS.slice(2).find(([, size]) => milliseconds >= 2_000 * size) ?? ["ms", 0.001];
  const number = milliseconds / 1_000 / seconds;
  return `${unit === "s" ? number.toFixed(1) : Math.round(number)} ${unit}`;
};
