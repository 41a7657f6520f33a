import { describe, expect, test } from "vitest";
import {
  attemptMs,
  barOf,
  nodeAround,
  originOfError,
  parentRow,
  rowsOf,
  tickOf,
} from "../../console/src/parts/timeline/rows.ts";
import { slowestNode } from "../../console/src/parts/timeline/spans.ts";
import { sumOf, type Span, type Trace } from "../../console/src/parts/timeline/trace.ts";

const span = (id: number, start_ms: number, end_ms: number | null, fields: Partial<Span> = {}): Span => ({
  ...{ id, parent: null, kind: "node", name: `n${id}`, start_ms, end_ms, status: "success" },
  ...fields,
});
const trace = (spans: Span[], fields: Partial<Trace> = {}): Trace => ({
  ...{ run_id: "r", thread_id: "t", status: "success", queue_ms: 0, answered_after_ms: null, run_ms: null },
  attempts: [{ attempt: 1, started_at: "2026-01-01T00:00:00Z", spans, dropped_spans: 0 }],
  usage: [],
  ...fields,
});

describe("the layout of a timeline", () => {
  test("shows each span below the one around it, by start, and hides what is folded", () => {
    const spans = [
      span(3, 5, 6, { parent: 1 }),
      span(1, 0, 10),
      span(2, 1, 4, { parent: 1 }),
      span(4, 11, 12),
    ];
    expect(rowsOf(spans, new Set()).map(({ span: { id }, level }) => [id, level])).toEqual([
      [1, 1],
      [2, 2],
      [3, 2],
      [4, 1],
    ]);
    expect(rowsOf(spans, new Set([1])).map(({ span: { id }, hasChildren }) => [id, hasChildren])).toEqual([
      [1, true],
      [4, false],
    ]);
    expect(parentRow(rowsOf(spans, new Set()), 2)).toBe(0);
  });

  test("ignores parents that are missing, later, or the span itself", () => {
    const spans = [
      span(1, 0, 1, { parent: 1 }),
      span(2, 1, 2, { parent: 9 }),
      span(3, 2, 3, { parent: 4 }),
      span(4, 3, 4, { parent: 3 }),
    ];
    expect(rowsOf(spans, new Set()).map(({ span: { id }, level }) => [id, level])).toEqual([
      [1, 1],
      [2, 1],
      [3, 1],
      [4, 2],
    ]);
  });

  test("lays out thousands of nested spans", () => {
    const spans = Array.from({ length: 5_000 }, (_, index) =>
      span(index + 1, index, index + 1, { parent: index || null }),
    );
    expect(rowsOf(spans, new Set()).at(-1)?.level).toBe(5_000);
  });

  test("keeps bars within the axis, and marks the first token", () => {
    expect(barOf(span(1, 25, 75, { first_token_ms: 50 }), 100, 100)).toEqual({
      left: 25,
      width: 50,
      firstToken: 50,
    });
    expect(barOf(span(1, -5, 500), 100, 200)).toEqual({ left: 0, width: 100, firstToken: undefined });
    expect(barOf(span(1, 50, null, { status: "running" }), 100, 100)).toEqual({
      left: 50,
      width: 50,
      firstToken: undefined,
    });
    expect(barOf(span(1, 0, 0), 0, 0)).toEqual({ left: 0, width: 100, firstToken: undefined });
  });

  test("ends a running attempt now, and never before what is known", () => {
    const running = trace([span(1, 0, 4_000)], { status: "running" });
    const [attempt] = running.attempts;
    const begun = Date.parse("2026-01-01T00:00:00Z");
    expect(attemptMs(running, attempt!, begun + 9_000)).toBe(9_000);
    // The browser's clock is behind.
    expect(attemptMs(running, attempt!, begun - 60_000)).toBe(4_000);
    expect(attemptMs(trace([span(1, 0, 4_000)], { run_ms: 5_000 }), attempt!, 0)).toBe(5_000);
  });

  test("marks an axis at round times", () => {
    expect([0, 7, 90, 231, 9_600, 36_000, 600_000, 86_400_000].map(tickOf)).toEqual([
      1, 2, 50, 100, 5_000, 10_000, 300_000, 43_200_000,
    ]);
  });

  test("names the slowest node by its time outside the nodes inside it", () => {
    const spans = [
      span(1, 0, 100, { name: "outer" }),
      span(2, 10, 90, { parent: 1, name: "constructor" }),
      span(3, 100, 110),
    ];
    expect(slowestNode(spans, 110)).toMatchObject({ name: "constructor", milliseconds: 80, times: 1, id: 2 });
    expect(slowestNode([], 0)).toBeUndefined();
  });

  test("finds the innermost failed span, and the node around it", () => {
    const error = { type: "Error", message: "no" };
    const spans = [
      span(1, 0, 9, { error, name: "tools" }),
      span(2, 1, 8, { parent: 1, error, kind: "tool", name: "search" }),
    ];
    expect(originOfError(spans)?.id).toBe(2);
    expect(nodeAround(spans[1]!, spans)).toBe("tools");
  });

  test("sums the tokens of models, and leaves out unknown prices", () => {
    const used = {
      calls: 1,
      input_tokens: 3,
      output_tokens: 2,
      cache_read_tokens: 1,
      cache_creation_tokens: 0,
      reasoning_tokens: 0,
    };
    expect(sumOf([])).toBeUndefined();
    expect(sumOf([{ ...used, model: "a", cost: null }])?.cost).toBeNull();
    expect(
      sumOf([
        { ...used, model: "a", cost: 0.5 },
        { ...used, model: "b", cost: null },
      ]),
    ).toMatchObject({
      input_tokens: 6,
      cost: 0.5,
    });
  });
});
