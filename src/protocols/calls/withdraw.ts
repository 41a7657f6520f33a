import type { Caller } from "../../access/caller.ts";
import type { RunService } from "../../api/runs/service.ts";
import type { Call, StartCall } from "./start.ts";
import type { Task } from "./tasks.ts";

const WITHDRAWN_FOR_SECONDS = 3_600;

export type Withdrawal = Pick<Call, "origin" | "headers"> & { metadata?: Call["body"]["metadata"] };

/**
 * Cancels a task that waits for an answer: its newest run is then one that was cancelled before it began. Throws a
 * `conflict` if an answer was first.
 */
export const createWithdraw =
  (start: StartCall, { cancel }: Pick<RunService["cancellation"], "cancel">) =>
  async (
    caller: Caller,
    { run, threadId, firstRunId: taskRunId, turns: turnsSeen }: Task,
    { metadata, ...rest }: Withdrawal,
  ): Promise<void> => {
    // Without input the run would only ask again, if this process died before it cancels the run.
    const body = { input: null, after_seconds: WITHDRAWN_FOR_SECONDS, stream_mode: [], metadata };
    const { row } = await start({
      ...{ ...rest, caller, assistantId: run.assistant_id, threadId, taskRunId, turnsSeen, body },
    });
    const selector = { threadId, runId: row.run_id };
    await cancel(caller, selector, { action: "interrupt", reason: "requested" }, undefined);
  };
