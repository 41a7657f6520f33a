import type { Authorize } from "../../access/authorize.ts";
import type { AssistantService } from "../../api/assistants/service.ts";
import type { RunService } from "../../api/runs/service.ts";
import type { ThreadService } from "../../api/threads/service.ts";
import type { Database } from "../../platform/database/database.ts";
import { createOutcomes } from "./outcome.ts";
import { createStartCall } from "./start.ts";
import { createTasks } from "./tasks.ts";
import { createWithdraw } from "./withdraw.ts";

export interface CallServiceParts {
  database: Database;
  authorize: Authorize;
  assistants: AssistantService;
  runs: RunService;
  threads: ThreadService;
}

/** The parts of the API that MCP, A2A and AG-UI share. */
export const createCallService = ({ database, authorize, assistants, runs, threads }: CallServiceParts) => {
  const start = createStartCall(runs.creation);
  return {
    authorize,
    database,
    assistants,
    threads,
    start,
    withdraw: createWithdraw(start, runs.cancellation),
    outcomes: createOutcomes({ authorize, joining: runs.joining, states: threads.states }),
    tasks: createTasks(authorize, database),
    joining: runs.joining,
    cancellation: runs.cancellation,
  };
};

export type CallService = ReturnType<typeof createCallService>;
