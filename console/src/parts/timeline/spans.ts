import type { Span } from "./trace.ts";

/** A parent begins before its spans, so its id is smaller. Other parents would make loops. */
export const parentOf = ({ id, parent }: Span, byId: ReadonlyMap<number, Span>): Span | undefined =>
  parent !== null && parent < id ? byId.get(parent) : undefined;

export const mapOf = (spans: readonly Span[]): ReadonlyMap<number, Span> =>
  new Map(spans.map((span) => [span.id, span]));

/** Undefined: not known. @param totalMs when spans that run end */
export const endOf = ({ end_ms: end, status }: Span, totalMs?: number): number | undefined =>
  end ?? (status === "running" ? totalMs : undefined);

const covered = (times: readonly (readonly [start: number, end: number])[]): number => {
  let [sum, until] = [0, -Infinity];
  for (const [start, end] of [...times].sort(([one], [other]) => one - other)) {
    sum += Math.max(0, end - Math.max(start, until));
    until = Math.max(until, end);
  }
  return sum;
};

interface OwnTime {
  node: Span;
  ownMs: number;
}

/** The time of each node whose end is known, without the nodes inside it. @param totalMs when spans that run end */
export const ownTimes = (spans: readonly Span[], totalMs?: number): OwnTime[] => {
  const byId = mapOf(spans);
  const inside = new Map<Span, [start: number, end: number][]>();
  const ended: { node: Span; end: number }[] = [];
  for (const node of spans) {
    const end = node.kind === "node" ? endOf(node, totalMs) : undefined;
    if (end === undefined) continue;
    ended.push({ node, end });
    let around = parentOf(node, byId);
    while (around !== undefined && around.kind !== "node") around = parentOf(around, byId);
    if (around === undefined) continue;
    const times = inside.get(around) ?? [];
    times.push([node.start_ms, end]);
    inside.set(around, times);
  }
  return ended.map(({ node, end }) => ({
    node,
    ownMs: Math.max(0, end - node.start_ms - covered(inside.get(node) ?? [])),
  }));
};

export interface SlowNode {
  name: string;
  milliseconds: number;
  times: number;
  /** Its longest execution. */
  id: number;
}

/** The node with the most own time. Executions of one name count together. */
export const slowestNode = (spans: readonly Span[], totalMs: number): SlowNode | undefined => {
  const byName = new Map<string, SlowNode & { longestMs: number }>();
  for (const { node, ownMs } of ownTimes(spans, totalMs)) {
    const before = byName.get(node.name) ?? {
      name: node.name,
      milliseconds: 0,
      times: 0,
      id: node.id,
      longestMs: ownMs,
    };
    const isLongest = ownMs > before.longestMs;
    byName.set(node.name, {
      name: node.name,
      milliseconds: before.milliseconds + ownMs,
      times: before.times + 1,
      id: isLongest ? node.id : before.id,
      longestMs: isLongest ? ownMs : before.longestMs,
    });
  }
  return [...byName.values()].sort((one, other) => other.milliseconds - one.milliseconds)[0];
};
