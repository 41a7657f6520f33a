import { endOf, mapOf, parentOf } from "./spans.ts";
import type { Attempt, Span, Trace } from "./trace.ts";

export interface Row {
  span: Span;
  /** From 1. */
  level: number;
  hasChildren: boolean;
}

/** Each span below the one around it, by start, without what is inside folded spans. */
export const rowsOf = (spans: readonly Span[], folded: ReadonlySet<number>): Row[] => {
  const byId = mapOf(spans);
  const inside = new Map<Span | undefined, Span[]>();
  // The latest is first, because the stack below is read from its end.
  for (const span of [...spans].sort((one, other) => other.start_ms - one.start_ms || other.id - one.id)) {
    const parent = parentOf(span, byId);
    inside.set(parent, [...(inside.get(parent) ?? []), span]);
  }
  const rows: Row[] = [];
  const waiting = (inside.get(undefined) ?? []).map((span) => ({ span, level: 1 }));
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { span, level } = next;
    const children = inside.get(span) ?? [];
    rows.push({ span, level, hasChildren: children.length > 0 });
    if (!folded.has(span.id)) for (const child of children) waiting.push({ span: child, level: level + 1 });
  }
  return rows;
};

/** Of the row around this one. */
export const parentRow = (rows: readonly Row[], index: number): number => {
  const level = rows[index]?.level ?? 1;
  for (let at = index - 1; at >= 0; at -= 1) if ((rows[at]?.level ?? 1) < level) return at;
  return index;
};

/** How long an attempt took, as far as the trace shows. */
export const attemptMs = (
  { attempts, run_ms: runMs, status }: Trace,
  attempt: Attempt,
  now: number,
): number => {
  const known = attempt.spans.reduce(
    (end, span) => Math.max(end, span.end_ms ?? 0, span.start_ms, span.first_token_ms ?? 0),
    0,
  );
  if (attempts.length === 1 && runMs !== null) return Math.max(known, runMs);
  if (attempt !== attempts.at(-1) || status !== "running" || attempt.started_at === null) return known;
  // The server's clock may be ahead of the browser's.
  return Math.max(known, now - Date.parse(attempt.started_at) || 0);
};

/** A place in percent of the axis. */
export interface Bar {
  left: number;
  width: number;
  /** Within the bar, in percent of it. */
  firstToken: number | undefined;
}

const within = (value: number, least: number, most: number): number => Math.min(Math.max(value, least), most);

export const barOf = (span: Span, totalMs: number, scaleMs: number): Bar => {
  if (scaleMs <= 0) return { left: 0, width: 100, firstToken: undefined };
  const start = within(span.start_ms, 0, scaleMs);
  const end = within(endOf(span, totalMs) ?? totalMs, start, scaleMs);
  const first = span.first_token_ms;
  return {
    left: (start / scaleMs) * 100,
    width: ((end - start) / scaleMs) * 100,
    firstToken:
      first === undefined || end <= start
        ? undefined
        : within(((first - start) / (end - start)) * 100, 0, 100),
  };
};

const TICKS_AT_MOST = 4;

/** Milliseconds between two marks of an axis: 1, 2 or 5 times a power of ten, or whole minutes. */
export const tickOf = (scaleMs: number): number => {
  const least = Math.max(scaleMs / TICKS_AT_MOST, 1);
  if (least > 60_000) {
    const minutes = [1, 2, 5, 10, 15, 30, 60, 120, 240, 720, 1_440].find((each) => each * 60_000 >= least);
    return minutes === undefined ? Math.ceil(least / 86_400_000) * 86_400_000 : minutes * 60_000;
  }
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least) ?? 10 * power;
};

/** The innermost failed span: an error passes from it through the spans around it. */
export const originOfError = (spans: readonly Span[]): Span | undefined => {
  const failed = spans.filter(({ error }) => error !== undefined);
  const around = new Set(failed.map(({ parent }) => parent));
  return failed.findLast(({ id }) => !around.has(id));
};

/** The name of the node that the span is or is in. */
export const nodeAround = (span: Span, spans: readonly Span[]): string | undefined => {
  const byId = mapOf(spans);
  let one: Span | undefined = span;
  while (one !== undefined && one.kind !== "node") one = parentOf(one, byId);
  return one?.name;
};
