import { useQuery, useQueryClient, type QueryClient, type UseQueryResult } from "@tanstack/react-query";
import { isOver, type Run } from "../parts/run.ts";
import { statusOf, useConnection, type Connection } from "../server/connection.tsx";
import { refetchEvery } from "../server/queries.ts";

/** From `GET /threads/{thread_id}/runs/{run_id}/trace`. */
interface Span {
  id: number;
  parent: number | null;
  kind: string;
  name: string;
  start_ms: number;
  end_ms: number | null;
}

interface Trace {
  attempts: { spans: Span[] }[];
}

export interface NodeTime {
  graphId: string;
  name: string;
  calls: number;
  ownMs: number;
}

export interface NodeSample {
  /** Ended runs whose traces were read. */
  runs: number;
  nodes: NodeTime[];
}

const RUNS_AT_MOST = 20;
const LISTED_AT_MOST = 100;
const AT_ONCE = 4;
const POLL_MS = 120_000;

const covered = (times: readonly (readonly [start: number, end: number])[]): number => {
  let [sum, until] = [0, -Infinity];
  for (const [start, end] of [...times].sort(([one], [other]) => one - other)) {
    sum += Math.max(0, end - Math.max(start, until));
    until = Math.max(until, end);
  }
  return sum;
};

/** The time of each node that has ended, without the nodes inside it. */
export const ownTimes = (spans: readonly Span[]): { name: string; ownMs: number }[] => {
  const byId = new Map(spans.map((span) => [span.id, span]));
  const inside = new Map<Span, [number, number][]>();
  const nodes = spans.filter(({ kind, end_ms: end }) => kind === "node" && end !== null);
  // A parent has a smaller id; other parents would make loops.
  const around = ({ id, parent }: Span): Span | undefined =>
    parent !== null && parent < id ? byId.get(parent) : undefined;
  for (const node of nodes) {
    let outer = around(node);
    while (outer !== undefined && outer.kind !== "node") outer = around(outer);
    if (outer === undefined) continue;
    inside.set(outer, [...(inside.get(outer) ?? []), [node.start_ms, node.end_ms ?? node.start_ms]]);
  }
  return nodes.map((node) => ({
    name: node.name,
    ownMs: Math.max(0, (node.end_ms ?? node.start_ms) - node.start_ms - covered(inside.get(node) ?? [])),
  }));
};

type Traced = Pick<Run, "run_id" | "thread_id" | "status" | "graph_id">;

/** The trace of an ended run never changes. Undefined: the run was deleted. */
const ownTimesOf = (
  { request }: Connection,
  queries: QueryClient,
  { thread_id: threadId, run_id: runId }: Traced,
): Promise<{ name: string; ownMs: number }[] | null> =>
  queries.fetchQuery({
    queryKey: ["overview", "own times", runId],
    queryFn: async () => {
      try {
        const { attempts } = await request<Trace>("GET", `/threads/${threadId}/runs/${runId}/trace`);
        return attempts.flatMap(({ spans }) => ownTimes(spans));
      } catch (error) {
        if (statusOf(error) === 404) return null;
        throw error;
      }
    },
    staleTime: Infinity,
  });

const sampleOf = async (connection: Connection, queries: QueryClient): Promise<NodeSample> => {
  const { items } = await connection.search<Traced>("/runs/search", {
    limit: LISTED_AT_MOST,
    select: ["run_id", "thread_id", "status", "graph_id"],
  });
  const waiting = items.filter(isOver).slice(0, RUNS_AT_MOST);
  const byNode = new Map<string, NodeTime>();
  let runs = 0;
  const readNext = async (): Promise<void> => {
    for (let run = waiting.shift(); run !== undefined; run = waiting.shift()) {
      const times = await ownTimesOf(connection, queries, run);
      if (times === null) continue;
      runs += 1;
      for (const { name, ownMs } of times) {
        const graphId = run.graph_id ?? "";
        const key = JSON.stringify([graphId, name]);
        const node = byNode.get(key) ?? { graphId, name, calls: 0, ownMs: 0 };
        byNode.set(key, { ...node, calls: node.calls + 1, ownMs: node.ownMs + ownMs });
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, readNext));
  return { runs, nodes: [...byNode.values()].sort((a, b) => b.ownMs - a.ownMs) };
};

export const useSampledNodes = (): UseQueryResult<NodeSample> => {
  const connection = useConnection();
  const queries = useQueryClient();
  return useQuery({
    queryKey: ["overview", "nodes"],
    queryFn: () => sampleOf(connection, queries),
    refetchInterval: refetchEvery(POLL_MS),
  });
};
