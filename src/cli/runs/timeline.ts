import type { Span, Trace } from "../../api/runs/traces/schemas.ts";
import { cut, printable } from "../printable.ts";
import { durationText } from "../remote/duration.ts";
import { endingAt, mostTelling, parentOf, type AttemptTrace, type EndOf } from "./spans.ts";

const SPANS_AT_MOST = 200;
const ATTEMPTS_AT_MOST = 10;
const PIPE_COLUMNS = 80;
const NAMES_SHARE = 0.42;
const BAR_AT_LEAST = 8;
const INDENT_AT_MOST = 8;
const ERROR_AT_MOST = 200;
const INDENT = "  ";
const GAP = "  ";

interface Line {
  span: Span;
  depth: number;
}

const indentOf = (depth: number): string => INDENT.repeat(Math.min(depth, INDENT_AT_MOST));

/** Each span below the one around it, by start. */
const linesOf = (spans: readonly Span[]): Line[] => {
  const byId = new Map(spans.map((span) => [span.id, span]));
  const inside = new Map<Span | undefined, Span[]>();
  for (const span of [...spans].sort((one, other) => other.start_ms - one.start_ms || other.id - one.id)) {
    const parent = parentOf(span, byId);
    const siblings = inside.get(parent) ?? [];
    siblings.push(span);
    inside.set(parent, siblings);
  }
  const lines: Line[] = [];
  const waiting: Line[] = (inside.get(undefined) ?? []).map((span) => ({ span, depth: 0 }));
  for (let line = waiting.pop(); line !== undefined; line = waiting.pop()) {
    lines.push(line);
    const depth = line.depth + 1;
    for (const span of inside.get(line.span) ?? []) waiting.push({ span, depth });
  }
  return lines;
};

const nameText = ({ kind, name }: Span): string => printable(kind === "node" ? name : `${kind} ${name}`);

const barText = (span: Span, endOf: EndOf, totalMs: number, width: number): string => {
  const place = (milliseconds: number): number =>
    totalMs <= 0 ? 0 : Math.round((Math.min(Math.max(milliseconds, 0), totalMs) / totalMs) * width);
  const start = Math.min(place(span.start_ms), width - 1);
  const end = Math.max(place(endOf(span) ?? totalMs), start + 1);
  return `${" ".repeat(start)}${(span.end_ms === null ? "░" : "█").repeat(end - start)}`;
};

/** An error passes from a tool through its nodes; the innermost span shows it. */
const errorsShown = (spans: readonly Span[]): Set<Span> => {
  const shown = new Set(spans.filter(({ error }) => error !== undefined));
  const byId = new Map(spans.map((span) => [span.id, span]));
  for (const span of spans) {
    const parent = parentOf(span, byId);
    if (span.error !== undefined && parent?.error?.message === span.error.message) shown.delete(parent);
  }
  return shown;
};

const errorText = ({ span, depth }: Line, columns: number): string => {
  const { error } = span;
  if (error === undefined) return "";
  const indent = indentOf(depth + 1);
  const message = printable(`${error.type}: ${error.message}`.replace(/\s+/g, " "));
  const first = cut(`${indent}${cut(message, ERROR_AT_MOST)}`, columns);
  return `${first}\n${error.at === undefined ? "" : `${indent}at ${printable(error.at)}\n`}`;
};

const attemptText = (
  spans: readonly Span[],
  { endOf, totalMs, columns }: { endOf: EndOf; totalMs: number; columns: number | undefined },
): string => {
  const lines = linesOf(spans);
  const whole = columns ?? PIPE_COLUMNS;
  const names = lines.map(({ span, depth }) => `${indentOf(depth)}${nameText(span)}`);
  const longest = names.reduce((width, name) => Math.max(width, [...name].length), 0);
  const nameWidth = Math.min(longest, Math.floor(whole * NAMES_SHARE));
  const durations = lines.map(({ span }) => {
    const end = endOf(span);
    return end === undefined ? "-" : durationText(Math.max(0, end - span.start_ms));
  });
  const durationWidth = durations.reduce((width, text) => Math.max(width, text.length), 0);
  const statusOf = ({ status }: Span): string => (status === "success" ? "" : status);
  const statusWidth = spans.reduce((width, span) => Math.max(width, statusOf(span).length), 0);
  const head = (name: string, duration: string, status: string): string =>
    [
      name.padEnd(nameWidth),
      duration.padStart(durationWidth),
      ...(statusWidth === 0 ? [] : [status.padEnd(statusWidth)]),
      "",
    ].join(GAP);
  const barWidth = Math.max(BAR_AT_LEAST, whole - head("", "", "").length);
  const scale = durationText(totalMs);
  const shownErrors = errorsShown(spans);
  return [
    `${head("", "", "")}0${scale.padStart(barWidth - 1)}\n`,
    ...lines.map((line, at) => {
      const { span } = line;
      const name = columns === undefined ? names[at]! : cut(names[at]!, nameWidth);
      const text = `${head(name, durations[at]!, statusOf(span))}${barText(span, endOf, totalMs, barWidth)}`;
      return `${text.trimEnd()}\n${shownErrors.has(span) ? errorText(line, whole) : ""}`;
    }),
  ].join("");
};

/** How long an attempt took, as far as the trace shows. */
export const attemptMs = ({ attempts, run_ms: runMs, status }: Trace, attempt: AttemptTrace): number => {
  const { spans, started_at: startedAt } = attempt;
  const isLast = attempt === attempts.at(-1);
  const known = spans.reduce((end, span) => Math.max(end, span.end_ms ?? span.start_ms), 0);
  if (attempts.length === 1 && runMs !== null) return Math.max(known, runMs);
  if (!isLast || status !== "running" || startedAt === null) return known;
  return Math.max(known, Date.now() - Date.parse(startedAt));
};

const count = new Intl.NumberFormat("en-US");

/**
 * The spans of a run as indented trees with bars, one tree for each attempt. The output has at most 200 spans.
 * @param columns width of the terminal; undefined: names are not cut, bars end at 80 characters
 */
export const timelineText = (trace: Trace, columns: number | undefined): string => {
  const shown = trace.attempts.slice(-ATTEMPTS_AT_MOST);
  const earlier = trace.attempts.length - shown.length;
  const perAttempt = Math.floor(SPANS_AT_MOST / Math.max(1, shown.length));
  const isOne = trace.attempts.length === 1;
  const parts = shown.map((attempt) => {
    const { spans, dropped_spans: dropped } = attempt;
    const title = isOne ? "" : `Attempt ${attempt.attempt}, ${attempt.started_at ?? "nothing was stored"}\n`;
    if (spans.length === 0) return title;
    const totalMs = attemptMs(trace, attempt);
    const endOf = endingAt(totalMs);
    const chosen = mostTelling(spans, endOf, perAttempt);
    const left = spans.length - chosen.length;
    return [
      title,
      attemptText(chosen, { endOf, totalMs, columns }),
      left === 0 ? "" : `${count.format(left)} shorter spans are left out; --json has all.\n`,
      dropped === 0 ? "" : `${count.format(dropped)} spans were not stored, because the trace was full.\n`,
    ].join("");
  });
  return `${earlier === 0 ? "" : `${earlier} earlier attempts are left out; --json has all.\n`}${parts.join("\n")}`;
};
