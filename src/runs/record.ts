import type { RunRow } from "../database/tables.ts";
import { timestamp } from "../lib/timestamps.ts";
import type { RunRecord, RunSummary } from "./schemas.ts";
import type { RunSummaryRow } from "./records/search.ts";

export const isTerminal = (status: RunRow["status"]): boolean => status !== "pending" && status !== "running";

/** A run as a search shows it. */
export const toRunSummary = (row: RunSummaryRow): RunSummary => ({
  run_id: row.run_id,
  thread_id: row.thread_id,
  assistant_id: row.assistant_id,
  graph_id: row.graph_id,
  created_at: timestamp(row.created_at),
  updated_at: timestamp(row.updated_at),
  run_started_at: row.started_at && timestamp(row.started_at),
  // Nothing changes a run after its end.
  run_ended_at: isTerminal(row.status) ? timestamp(row.updated_at) : null,
  available_at: timestamp(row.available_at),
  attempts: row.attempt,
  lost_attempts: row.lost_attempts,
  status: row.status,
  error: row.error as RunRecord["error"],
  metadata: row.metadata,
  multitask_strategy: row.multitask_strategy,
});

/** What a run was asked to do, as it is shown: without what of `kwargs` is the server's own. */
export const shownKwargs = (row: Pick<RunRow, "kwargs" | "config" | "context">): RunRecord["kwargs"] => {
  const { event_streaming: _, headers: __, ...kwargs } = row.kwargs;
  return { ...kwargs, config: row.config, context: row.context };
};

/** A run as the API shows it. */
export const toRunRecord = (row: RunRow): RunRecord => ({ ...toRunSummary(row), kwargs: shownKwargs(row) });
