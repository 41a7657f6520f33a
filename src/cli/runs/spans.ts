import type { Span, Trace } from "../../api/runs/traces/schemas.ts";

export type AttemptTrace = Trace["attempts"][number];

/** When a span ended, in milliseconds since its attempt began. Undefined: not known. */
export type EndOf = (span: Span) => number | undefined;

/** Spans that run end with the attempt, after `totalMs`. */
export const endingAt =
  (totalMs: number): EndOf =>
  ({ end_ms: end, status }) =>
    end ?? (status === "running" ? totalMs : undefined);

/** A parent begins before its spans, so its id is smaller. Other parents would make loops. */
export const parentOf = ({ id, parent }: Span, byId: ReadonlyMap<number, Span>): Span | undefined =>
  parent !== null && parent < id ? byId.get(parent) : undefined;

/** The failed spans, then the longest ones, each with all spans around it. */
export const mostTelling = (spans: readonly Span[], endOf: EndOf, atMost: number): Span[] => {
  if (spans.length <= atMost) return [...spans];
  const byId = new Map(spans.map((span) => [span.id, span]));
  const weight = (span: Span): number =>
    span.status === "error" ? Infinity : (endOf(span) ?? Infinity) - span.start_ms;
  const weighed = spans.map((span) => ({ span, weight: weight(span) }));
  weighed.sort((one, other) => (one.weight === other.weight ? 0 : other.weight - one.weight));
  const chosen = new Set<Span>();
  for (const { span } of weighed) {
    const room = atMost - chosen.size;
    const added: Span[] = [];
    let one: Span | undefined = span;
    for (; one !== undefined && !chosen.has(one) && added.length <= room; one = parentOf(one, byId))
      added.push(one);
    if (added.length <= room) for (const each of added) chosen.add(each);
  }
  return spans.filter((span) => chosen.has(span));
};

const covered = (times: readonly (readonly [start: number, end: number])[]): number => {
  let [sum, until] = [0, -Infinity];
  for (const [start, end] of [...times].sort(([one], [other]) => one - other)) {
    sum += Math.max(0, end - Math.max(start, until));
    until = Math.max(until, end);
  }
  return sum;
};

export interface SlowNode {
  name: string;
  milliseconds: number;
  times: number;
}

/**
 * The node with the most time of its own in one attempt: without the nodes inside it, so that the node around a
 * subgraph does not hide the slow node in the subgraph. Executions of one name count together.
 */
export const slowestNode = (spans: readonly Span[], endOf: EndOf): SlowNode | undefined => {
  const byId = new Map(spans.map((span) => [span.id, span]));
  const inside = new Map<Span, (readonly [number, number])[]>();
  const nodes = spans.filter(({ kind }) => kind === "node");
  for (const node of nodes) {
    let around = parentOf(node, byId);
    while (around !== undefined && around.kind !== "node") around = parentOf(around, byId);
    const end = endOf(node);
    if (around === undefined || end === undefined) continue;
    const times = inside.get(around) ?? [];
    times.push([node.start_ms, end]);
    inside.set(around, times);
  }
  const byName = new Map<string, SlowNode>();
  for (const node of nodes) {
    const end = endOf(node);
    if (end === undefined) continue;
    const slow = byName.get(node.name) ?? { name: node.name, milliseconds: 0, times: 0 };
    slow.milliseconds += Math.max(0, end - node.start_ms - covered(inside.get(node) ?? []));
    slow.times += 1;
    byName.set(node.name, slow);
  }
  let slowest: SlowNode | undefined;
  for (const slow of byName.values())
    if (slowest === undefined || slow.milliseconds > slowest.milliseconds) slowest = slow;
  return slowest;
};
