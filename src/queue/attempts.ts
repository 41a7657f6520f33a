import type { JsonObject } from "../lib/json.ts";
import type { RunStatus, ThreadStatus } from "../database/tables.ts";

/** An attempt: one execution of a run by the holder of its lease. `attempt` is the fencing token, see README.md. */
export interface AttemptSelector {
  runId: string;
  attempt: number;
}

/** A run's place: what `thread_id` and `run_id` of a path name. */
export interface RunSelector {
  threadId: string;
  runId: string;
}

/** How a run ended. */
export interface RunOutcome {
  status: Exclude<RunStatus, "pending" | "running">;
  /** `{error, message}` if it failed. */
  error: JsonObject | null;
  /** What the thread becomes unless another run waits. */
  threadStatus: Exclude<ThreadStatus, "busy">;
  /** `{task_id: [{id, value}]}` as JSON text. */
  interrupts: string;
}
