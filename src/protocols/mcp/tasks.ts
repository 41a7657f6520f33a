import type { CallToolResult } from "@modelcontextprotocol/server";
import type { Caller } from "../../access/caller.ts";
import { ThreadloomError } from "../../platform/domain/errors.ts";
import { timestamp } from "../../platform/lib/timestamps.ts";
import type { CreatedRun } from "../../api/runs/joining/results.ts";
import type { CallService } from "../calls/service.ts";
import { taskIdOf, type Task } from "../calls/tasks.ts";
import type { Client, Exchange } from "./exchange.ts";
import { answersOf, inputRequestsOf, mayAsk, resultOf, type Place } from "./results.ts";

const POLL_INTERVAL_MS = 1_000;

/** Ids of this server begin with their time. */
const timeOf = (runId: string): Date => new Date(Number.parseInt(runId.replace("-", "").slice(0, 12), 16));

/** `Task` of the extension `io.modelcontextprotocol/tasks`. `ttlMs`: null for as long as the thread. */
const fieldsOf = (
  taskId: string,
  status: "working" | "input_required" | "completed" | "cancelled",
  { firstRunId, updatedAt, ttlMs }: { firstRunId: string; updatedAt: Date; ttlMs: number | null },
) => ({
  taskId,
  status,
  createdAt: timestamp(timeOf(firstRunId)),
  lastUpdatedAt: timestamp(updatedAt),
  ttlMs,
  pollIntervalMs: POLL_INTERVAL_MS,
});

export type CreatedTask = ReturnType<typeof createdTask>;

/** The run is stored already. */
export const createdTask = ({ row }: CreatedRun, ttlMs: number | null) => {
  const { thread_id: threadId, run_id: runId, updated_at: updatedAt } = row;
  const times = { firstRunId: runId, updatedAt, ttlMs };
  return { ...fieldsOf(taskIdOf({ threadId, runId }), "working", times), resultType: "task" as const };
};

export const createTaskMethods = (calls: CallService, ttlMs: number | null) => {
  /** Runs of the API and of other protocols are no tasks of MCP. Throws `not_found`. */
  const find = (caller: Caller, taskId: string): Promise<Task> => calls.tasks.find(caller, taskId, "mcp");

  /** False if another answer came first. */
  const unlessAnswered = async (answering: Promise<unknown>): Promise<boolean> => {
    try {
      await answering;
      return true;
    } catch (error) {
      if (error instanceof ThreadloomError && error.kind === "conflict") return false;
      throw error;
    }
  };

  const resultOfTask = async (
    { threadId, run }: Task,
    { caller, signal }: Exchange,
  ): Promise<CallToolResult> => {
    const place: Place = { run_id: run.run_id, thread_id: threadId };
    const outcome = await calls.outcomes.of(caller, { threadId, runId: run.run_id }, { signal, caller });
    return resultOf(outcome, place);
  };

  return {
    /** Throws `not_found`. */
    async get(taskId: string, { capabilities }: Client, exchange: Exchange) {
      const task = await find(exchange.caller, taskId);
      const { firstRunId, run } = task;
      const fields = (status: Parameters<typeof fieldsOf>[1]) =>
        fieldsOf(task.id, status, { firstRunId, updatedAt: run.updated_at, ttlMs });
      switch (task.state) {
        case "submitted":
        case "working":
          return fields("working");
        case "cancelled":
          return fields("cancelled");
        case "input-required":
          // A client that can't be asked gets the question as the result.
          if (mayAsk(capabilities))
            return { ...fields("input_required"), inputRequests: inputRequestsOf(task) };
          break;
        default:
      }
      const result = await resultOfTask(task, exchange);
      // The package completes only the results that are not inside another.
      return { ...fields("completed"), result: { ...result, resultType: "complete" } };
    },

    /** Ignores answers to questions that no longer wait, and refusals to answer. Throws `not_found`. */
    async update(
      taskId: string,
      responses: Readonly<Record<string, unknown>>,
      { caller, headers }: Exchange,
    ): Promise<void> {
      const task = await find(caller, taskId);
      if (task.state !== "input-required") return;
      const { resume } = answersOf(task, responses);
      if (Object.keys(resume).length === 0) return;
      const { threadId, firstRunId, turns } = task;
      await unlessAnswered(
        calls.start({
          caller,
          origin: "mcp",
          assistantId: task.run.assistant_id,
          threadId,
          taskRunId: firstRunId,
          turnsSeen: turns,
          body: { command: { resume }, stream_mode: [] },
          headers,
        }),
      );
    },

    /** Does nothing to a task that has ended, as the client sees it. Throws `not_found`. */
    async cancel(taskId: string, { capabilities }: Client, { caller, headers }: Exchange): Promise<void> {
      let task = await find(caller, taskId);
      if (task.state === "input-required" && mayAsk(capabilities)) {
        if (await unlessAnswered(calls.withdraw(caller, task, { origin: "mcp", headers }))) return;
        // An answer was first: its run is cancelled.
        task = await find(caller, taskId);
      }
      const { state, threadId, run } = task;
      if (state !== "submitted" && state !== "working") return;
      const asked = { action: "interrupt", reason: "requested" } as const;
      await calls.cancellation.cancel(caller, { threadId, runId: run.run_id }, asked, undefined);
    },
  };
};

export type TaskMethods = ReturnType<typeof createTaskMethods>;
