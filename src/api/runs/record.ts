import type { CancelReason, RunRow } from "../../platform/database/tables.ts";
import { timestamp } from "../../platform/lib/timestamps.ts";
import type { RunRecord, RunSummary } from "./schemas.ts";
import type { RunSummaryRow } from "./search.ts";

export const isTerminal = (status: RunRow["status"]): boolean => status !== "pending" && status !== "running";

/** Clients read the word before the colon; `taken` comes from the hosted service. */
const CANCEL_REASONS: Readonly<Record<CancelReason, string>> = {
  requested: "requested: a request cancelled the run",
  taken: "taken: another run has taken over the input of this one",
  replaced: "replaced: a newer run of the thread took its place",
  disconnected: "disconnected: its client left before the end",
};

/** Null if the run reached another end before it could stop. */
const cancelReasonOf = ({ status, cancel_reason: reason }: ShownRow<RunSummaryRow>): string | null =>
  status === "interrupted" && reason != null ? CANCEL_REASONS[reason] : null;

type ShownRow<Row> = Row & { cancel_reason?: CancelReason | null };

export const toRunSummary = (row: ShownRow<RunSummaryRow>): RunSummary => ({
  run_id: row.run_id,
  thread_id: row.thread_id,
  assistant_id: row.assistant_id,
  graph_id: row.graph_id,
  created_at: timestamp(row.created_at),
  updated_at: timestamp(row.updated_at),
  run_started_at: row.started_at && timestamp(row.started_at),
  // A run never changes after its end.
  run_ended_at: isTerminal(row.status) ? timestamp(row.updated_at) : null,
  available_at: timestamp(row.available_at),
  attempts: row.attempt,
  lost_attempts: row.lost_attempts,
  status: row.status,
  cancel_reason: cancelReasonOf(row),
  error: row.error as RunRecord["error"],
  metadata: row.metadata,
  multitask_strategy: row.multitask_strategy,
});

export const shownKwargs = (row: Pick<RunRow, "kwargs" | "config" | "context">): RunRecord["kwargs"] => {
  const { event_streaming: _, headers: __, trace_context: ___, ...kwargs } = row.kwargs;
  return { ...kwargs, config: row.config, context: row.context };
};

export const toRunRecord = (row: ShownRow<RunRow>): RunRecord => ({
  ...toRunSummary(row),
  kwargs: shownKwargs(row),
});
