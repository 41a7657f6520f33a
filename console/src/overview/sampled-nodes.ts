import { useQuery, useQueryClient, type QueryClient, type UseQueryResult } from "@tanstack/react-query";
import { isOver, type Run } from "../parts/run.ts";
import { ownTimes } from "../parts/timeline/spans.ts";
import type { Trace } from "../parts/timeline/trace.ts";
import { statusOf } from "../server/api-error.ts";
import { useConnection, type Connection } from "../server/connection.tsx";
import { refetchEvery } from "../server/refetch.ts";

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
        return attempts.flatMap(({ spans }) =>
          ownTimes(spans).map(({ node, ownMs }) => ({ name: node.name, ownMs })),
        );
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
