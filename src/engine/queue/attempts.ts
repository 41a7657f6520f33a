import type { JsonObject } from "../../platform/lib/json.ts";
import type { EndedRun, RunRow, RunStatus, ThreadStatus } from "../../platform/database/tables.ts";

/** A run's place: what `thread_id` and `run_id` of a path name. */
export interface RunSelector {
  threadId: string;
  runId: string;
}

/** An attempt: one execution of a run by the holder of its lease. `attempt` is the fencing token, see README.md. */
export interface AttemptSelector extends RunSelector {
  attempt: number;
}

export const selectorOf = (run: Pick<RunRow, "thread_id" | "run_id" | "attempt">): AttemptSelector => ({
  threadId: run.thread_id,
  runId: run.run_id,
  attempt: run.attempt,
});

/** How a run ended. */
export interface RunOutcome {
  status: Exclude<RunStatus, "pending" | "running">;
  /** `{error, message}` if it failed. */
  error: JsonObject | null;
  /** What the thread becomes unless another run waits. `unchanged`: what it was, its interrupts and its error included. */
  threadStatus: Exclude<ThreadStatus, "busy"> | "unchanged";
  /** `{task_id: [{id, value}]}` as JSON text. */
  interrupts: string;
  /**
   * For whoever is told of the end (sql/ended.ts), if somebody is: the run's last values, as they are stored; null: it has
   * none, or `omitted` because they are too large.
   */
  final?: { values: Buffer | null; omitted: boolean } | undefined;
  /** The event log does not have all that the attempt told. It matters only if another process reads the run. */
  unlogged?: boolean;
}

/** How a run is at its end; `rolled-back` and `deleted` leave no row behind that could say it. */
export type EndStatus = RunOutcome["status"] | "rolled-back" | "deleted";

/** What is told of a run that ended. */
export interface RunEnd {
  run: EndedRun;
  status: EndStatus;
  error: JsonObject | null;
  /** Of a run that was rolled back before it began: the place of its end among the events of its thread. */
  turn?: number | undefined;
}
