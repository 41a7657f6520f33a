import { expect, test } from "vitest";
import type { Span, Trace } from "../../../src/api/runs/traces/schemas.ts";
import { endingAt, mostTelling, slowestNode } from "../../../src/cli/runs/spans.ts";
import { timelineText } from "../../../src/cli/runs/timeline.ts";

const span = (id: number, parent: number | null, name: string, start: number, end: number | null): Span => ({
  id,
  parent,
  kind: "node",
  name,
  start_ms: start,
  end_ms: end,
  status: end === null ? "lost" : "success",
});
const endOf = endingAt(1_000);

test("the slowest node is the one inside a subgraph, not the node around it", () => {
  const spans = [
    span(1, null, "around", 0, 900),
    span(2, 1, "inside", 10, 890),
    span(3, null, "b", 900, 1e3),
  ];
  expect(slowestNode(spans, endOf)).toEqual({ name: "inside", milliseconds: 880, times: 1 });
});

test("parallel nodes in a subgraph are subtracted once, and executions of one node are added", () => {
  const spans = [
    span(1, null, "around", 0, 900),
    span(2, 1, "work", 100, 300),
    span(3, 1, "work", 200, 400),
    span(4, null, "lost", 900, null),
  ];
  expect(slowestNode(spans, endOf)).toEqual({ name: "around", milliseconds: 600, times: 1 });
  expect(slowestNode(spans.slice(1), endOf)).toEqual({ name: "work", milliseconds: 400, times: 2 });
  expect(slowestNode([], endOf)).toBeUndefined();
});

test("failed spans are kept before longer ones, each below the spans around it", () => {
  const failed: Span = { ...span(3, 2, "failed", 1, 2), status: "error" };
  const spans = [span(1, null, "a", 0, 500), span(2, null, "b", 0, 5), failed, span(4, 1, "c", 0, 400)];
  expect(mostTelling(spans, endOf, 3).map(({ id }) => id)).toEqual([1, 2, 3]);
});

const traceOf = (spans: Span[], attempts = 1): Trace => ({
  run_id: "0199f3a0-0000-7000-8000-000000000000",
  thread_id: "0199f3a0-0000-7000-8000-000000000000",
  status: "success",
  created_at: "2026-01-01T00:00:00Z",
  queue_ms: 0,
  answered_after_ms: null,
  run_ms: 1_000,
  attempts: Array.from({ length: attempts }, (_, at) => ({
    attempt: at + 1,
    started_at: "2026-01-01T00:00:00Z",
    spans,
    dropped_spans: 0,
  })),
  usage: [],
});

test("a bar begins and ends in proportion to the run, and ends without end are dotted", () => {
  const [scale, first, second] = timelineText(
    traceOf([span(1, null, "a", 0, 500), span(2, null, "b", 500, null)]),
    60,
  ).split("\n") as [string, string, string];
  const width = scale.length - scale.indexOf("0");
  expect(first.length).toBe(scale.length - Math.floor(width / 2));
  expect(second).toMatch(/^b +- {2}lost +░+$/);
  expect([second.indexOf("░"), second.length]).toEqual([first.length, scale.length]);
});

test("parents that form a loop, long chains and names with control characters can't break the timeline", () => {
  const loop = [span(1, 2, "a\u001b[2J", 0, 1), span(2, 1, "b", 0, 1), span(3, 3, "c", 0, 1)];
  expect(timelineText(traceOf(loop), 80)).toMatch(/\na\?\[2J .*\n {2}b .*\nc /);
  const chain = Array.from({ length: 4_000 }, (_, at) =>
    span(at + 1, at === 0 ? null : at, "n".repeat(200), 0, 9),
  );
  const lines = timelineText(traceOf(chain, 30), 80).split("\n");
  expect(lines.length).toBeLessThan(300);
  expect(lines.filter((line) => [...line].length > 80)).toEqual([]);
  expect(lines[0]).toBe("20 earlier attempts are left out; --json has all.");
});
