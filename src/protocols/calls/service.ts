import type { Authorize } from "../../access/authorize.ts";
import type { AssistantService } from "../../api/assistants/service.ts";
import type { RunService } from "../../api/runs/service.ts";
import type { ThreadService } from "../../api/threads/service.ts";
import type { Database } from "../../platform/database/database.ts";
import { createOutcomes } from "./outcome.ts";
import { createStartCall, type Call } from "./start.ts";
import { createTasks, type Task } from "./tasks.ts";
import type { Caller } from "../../access/caller.ts";

export interface CallServiceParts {
  database: Database;
  authorize: Authorize;
  assistants: AssistantService;
  runs: RunService;
  threads: ThreadService;
}

const WITHDRAWN_FOR_SECONDS = 3_600;

/** The parts of the API that MCP, A2A and AG-UI share. */
export const createCallService = ({ database, authorize, assistants, runs, threads }: CallServiceParts) => {
  const start = createStartCall(runs.creation);
  return {
    authorize,
    database,
    assistants,
    threads,
    start,
    outcomes: createOutcomes(authorize, runs.joining, threads.states),
    tasks: createTasks(authorize, database),
    joining: runs.joining,
    cancellation: runs.cancellation,

    /**
     * Cancels a task that waits for an answer: its newest run is then one that was cancelled before it began. Throws a
     * `conflict` if an answer was first.
     */
    async withdraw(
      caller: Caller,
      { run, threadId, firstRunId: taskRunId, turns: turnsSeen }: Task,
      by: Pick<Call, "origin" | "headers"> & Pick<Call["body"], "metadata">,
    ): Promise<void> {
      const { metadata, ...rest } = by;
      // Without input the run would only ask again, if this process died before it cancels the run.
      const body = { input: null, after_seconds: WITHDRAWN_FOR_SECONDS, stream_mode: [], metadata };
      const { row } = await start({
        ...{ ...rest, caller, assistantId: run.assistant_id, threadId, taskRunId, turnsSeen, body },
      });
      const selector = { threadId, runId: row.run_id };
      await runs.cancellation.cancel(
        caller,
        selector,
        { action: "interrupt", reason: "requested" },
        undefined,
      );
    },
  };
};

export type CallService = ReturnType<typeof createCallService>;
