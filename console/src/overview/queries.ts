import { keepPreviousData, useQuery, type UseQueryResult } from "@tanstack/react-query";
import { errorLine, type Run } from "../parts/run.ts";
import { DAY_MS } from "../parts/relative-time.ts";
import { useConnection } from "../server/connection.tsx";
import { refetchEvery } from "../server/refetch.ts";

export const STATUSES = ["success", "error", "timeout", "interrupted", "running", "pending"] as const;
export type Counts = Readonly<Record<(typeof STATUSES)[number], number>>;

export interface GraphCounts extends Counts {
  graph_id: string;
  median_ms: number | null;
  p95_ms: number | null;
}

/** `GET /runs/summary`. */
export interface Summary {
  from: string;
  to: string;
  hours: (Counts & { hour: string })[];
  graphs: GraphCounts[];
  is_complete: boolean;
}

/** `GET /usage?group_by=day,model`. */
export interface Usage {
  from: string;
  to: string;
  currency: string | null;
  rows: { day: string; model: string; input_tokens: number; output_tokens: number; cost: number | null }[];
  is_complete: boolean;
}

/** Of `GET /queue`. */
export interface QueueFigures {
  num_pending: number;
  num_running: number;
  oldest_seconds: number | null;
  is_complete: boolean;
}

const POLL_MS = 30_000;
const DAYS = 30;
const FAILURES_AT_MOST = 100;

export const useSummary = (hours: number): UseQueryResult<Summary> => {
  const { request } = useConnection();
  return useQuery({
    queryKey: ["overview", "summary", hours],
    queryFn: () => request<Summary>("GET", `/runs/summary?hours=${hours}`),
    refetchInterval: refetchEvery(POLL_MS),
    placeholderData: keepPreviousData,
  });
};

export const useUsage = (): UseQueryResult<Usage> => {
  const { request } = useConnection();
  return useQuery({
    queryKey: ["overview", "usage"],
    queryFn: () => {
      const from = new Date(Date.now() - (DAYS - 1) * DAY_MS).toISOString().slice(0, 10);
      return request<Usage>("GET", `/usage?group_by=day,model&from=${from}`);
    },
    refetchInterval: refetchEvery(POLL_MS),
  });
};

export const useQueueFigures = (): UseQueryResult<QueueFigures> => {
  const { request } = useConnection();
  return useQuery({
    queryKey: ["overview", "queue"],
    queryFn: () => request<QueueFigures>("GET", "/queue"),
    refetchInterval: refetchEvery(POLL_MS),
  });
};

/** The newest error of each graph, of the newest failed runs. */
export const useLastErrors = (from: string | undefined): ReadonlyMap<string, string> | undefined => {
  const { search } = useConnection();
  const { data } = useQuery({
    queryKey: ["overview", "errors", from],
    queryFn: async () => {
      const { items } = await search<Run>("/runs/search", {
        status: "error",
        created_after: from,
        limit: FAILURES_AT_MOST,
        select: ["graph_id", "error"],
      });
      return new Map(items.toReversed().map((run) => [run.graph_id ?? "", errorLine(run)]));
    },
    enabled: from !== undefined,
    refetchInterval: refetchEvery(POLL_MS),
  });
  return data;
};

export const allOf = (counts: Counts): number => STATUSES.reduce((sum, status) => sum + counts[status], 0);

export const failedOf = ({ error, timeout }: Counts): number => error + timeout;
