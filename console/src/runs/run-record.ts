import type { Run } from "../parts/run.ts";
import type { Connection } from "../server/connection.tsx";
import { ApiError } from "../server/api-error.ts";

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
    ...(handedBack > 0 ? [`${handedBack} handed back by a server that stopped`] : []),
  ];
  return [String(attempts), ...ends].join(", ");
};
