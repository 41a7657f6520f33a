import { useQuery } from "@tanstack/react-query";
import type { ApiRequest } from "../parts/request-snippets/snippets.ts";
import { isOver, type Run } from "../parts/run.ts";
import { useConnection, type Connection } from "../server/connection.tsx";
import { ApiError } from "../server/api-error.ts";
import { refetchEvery } from "../server/refetch.ts";

export interface RunDetails extends Run {
  kwargs?: Record<string, unknown> & {
    input?: unknown;
    command?: unknown;
    config?: unknown;
    context?: unknown;
    webhook?: unknown;
  };
}

export interface Delivery {
  url: string;
  state: string;
  failures: number;
  last_attempt_at: string | null;
  last_status: number | null;
  last_error: string | null;
  next_attempt_at: string | null;
  settled_at: string | null;
}

/** The API reads a run by its thread. */
export const readRun = async (
  { search, request }: Pick<Connection, "search" | "request">,
  runId: string,
): Promise<RunDetails> => {
  const { items } = await search<Run>("/runs/search", { run_id: runId, limit: 1 });
  const [found] = items;
  if (found === undefined) throw new ApiError(404, `Run ${runId} does not exist, or you may not see it.`);
  return await request<RunDetails>("GET", `/threads/${found.thread_id}/runs/${runId}`);
};

interface Task {
  name?: unknown;
  error?: unknown;
}

/** From the newest checkpoint of the run. */
export const readFailedNodes = async (
  { request }: Pick<Connection, "request">,
  { thread_id: threadId, run_id: runId }: Run,
): Promise<{ node: string; error: string }[]> => {
  const states = await request<{ tasks?: Task[] }[]>("POST", `/threads/${threadId}/history`, {
    limit: 1,
    metadata: { run_id: runId },
    select: ["tasks"],
  });
  return (states[0]?.tasks ?? []).flatMap(({ name, error }) =>
    typeof error === "string" ? [{ node: String(name), error }] : [],
  );
};

/** E.g. `3, 1 lost with a server or graph process`. */
export const attemptsText = ({ attempts = 0, lost_attempts: lost = 0 }: Run): string => {
  const handedBack = Math.max(0, attempts - lost - 1);
  const ends = [
    ...(lost > 0 ? [`${lost} lost with a server or graph process`] : []),
    ...(handedBack > 0 ? [`${handedBack} handed back by a server`] : []),
  ];
  return [String(attempts), ...ends].join(", ");
};

/** The values after the run, from its newest checkpoint. */
export const readOutput = async (
  { request }: Pick<Connection, "request">,
  { thread_id: threadId, run_id: runId }: Run,
): Promise<{ values: unknown } | null> => {
  const states = await request<{ values?: unknown }[]>("POST", `/threads/${threadId}/history`, {
    limit: 1,
    metadata: { run_id: runId },
    select: ["values"],
  });
  return states[0] === undefined ? null : { values: states[0].values };
};

const POLL_MS = 2_000;

/** Read every two seconds until the run is over. */
export const useRun = (runId: string) => {
  const connection = useConnection();
  return useQuery({
    queryKey: ["runs", "one", runId],
    queryFn: () => readRun(connection, runId),
    refetchInterval: (query) =>
      refetchEvery(query.state.data !== undefined && !isOver(query.state.data) ? POLL_MS : false)(query),
  });
};

export const useOutput = (run: Run | undefined) => {
  const connection = useConnection();
  return useQuery({
    queryKey: ["runs", "output", run?.run_id, run?.status],
    queryFn: () => (run === undefined ? null : readOutput(connection, run)),
    enabled: run !== undefined && isOver(run),
    staleTime: Infinity,
  });
};

const SET_BY_SERVER: ReadonlySet<string> = new Set(["graph_id", "created_by", "assistant_id"]);
const DEFAULTS: ReadonlyMap<string, string> = new Map([
  ["stream_mode", `["values"]`],
  ["stream_subgraphs", "false"],
  ["stream_resumable", "false"],
  ["on_disconnect", `"continue"`],
  ["durability", `"async"`],
  ["multitask_strategy", `"enqueue"`],
  ["config", `{"configurable":{}}`],
]);

const isTold = ([name, value]: [string, unknown]): boolean => {
  const text = value == null ? "{}" : JSON.stringify(value);
  return text !== "{}" && text !== DEFAULTS.get(name);
};

/** The request that starts a run like this one on the same thread. */
export const requestOf = (run: RunDetails): ApiRequest => {
  const metadata = Object.fromEntries(
    Object.entries(run.metadata ?? {}).filter(([name]) => !SET_BY_SERVER.has(name)),
  );
  const { multitask_strategy } = run;
  const fields = Object.entries({ ...run.kwargs, metadata, multitask_strategy });
  return {
    method: "POST",
    path: `/threads/${run.thread_id}/runs`,
    body: { assistant_id: run.assistant_id, ...Object.fromEntries(fields.filter(isTold)) },
  };
};
