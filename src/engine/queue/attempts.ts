import type { JsonObject } from "../../platform/lib/json.ts";
import type { EndedRun, RunRow, RunStatus, ThreadStatus } from "../../platform/database/tables.ts";
import type { ModelUsage } from "../../graphs/trace/scope.ts";
import type { FinalValues } from "./final-values.ts";

export interface RunSelector {
  threadId: string;
  runId: string;
}
export const OF_RUN = { threadId: "uuid", runId: "uuid" } as const;

/** One execution of a run by the holder of its lease. `attempt` is the fencing token, see README.md. */
export interface AttemptSelector extends RunSelector {
  attempt: number;
}
export const OF_ATTEMPT = { ...OF_RUN, attempt: "integer" } as const;

export const selectorOf = (run: Pick<RunRow, "thread_id" | "run_id" | "attempt">): AttemptSelector => ({
  threadId: run.thread_id,
  runId: run.run_id,
  attempt: run.attempt,
});

/** Tokens of all calls of one model. `cost`: undefined without a price. */
export interface PricedUsage extends ModelUsage {
  calls: number;
  cost: number | undefined;
}

/** See engine/traces/README.md. */
export interface AttemptRecords {
  part: number;
  startedAt: Date;
  /** JSON objects separated by commas; null: none. */
  spans: string | null;
  usage: readonly PricedUsage[];
}

export interface RunOutcome {
  status: Exclude<RunStatus, "pending" | "running">;
  error: JsonObject | null;
  /** The thread's status if no other run waits. `unchanged`: keeps status, interrupts and error. */
  threadStatus: Exclude<ThreadStatus, "busy"> | "unchanged";
  /** `{task_id: [{id, value}]}` as JSON text. */
  interrupts: string;
  /** Stored for the run's webhook (sql/ended.ts). */
  final?: FinalValues | undefined;
  /** Records of the attempt that are not stored yet. */
  records?: AttemptRecords | undefined;
}

/** `rolled-back` and `deleted` leave no row. */
type EndStatus = RunOutcome["status"] | "rolled-back" | "deleted";

export interface RunEnd {
  run: EndedRun;
  status: EndStatus;
  error: JsonObject | null;
  /** Orders the end among the thread's events. Only for a run that was rolled back before it began. */
  turn?: number | undefined;
}
