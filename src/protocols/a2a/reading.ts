import type { StreamResponse, Task as A2aTask } from "@a2a-js/sdk";
import type { JsonObject } from "../../platform/lib/json.ts";
import { eventsOf, type Outcome } from "../calls/outcome.ts";
import type { CallService } from "../calls/service.ts";
import type { Task } from "../calls/tasks.ts";
import { StreamLostError, type Accepted, type AgentRequest } from "./request.ts";
import { createArtifactUpdates, selectorOf, statusEvent, toA2aTask } from "./tasks.ts";

type TaskReader = Pick<AgentRequest, "caller" | "signal">;

/** A task as it ended; undefined values of a failed run. */
const endedAs = (task: Task, outcome: Outcome, at: Date): Task => {
  const ended = { ...task, run: { ...task.run, updated_at: at } };
  switch (outcome.kind) {
    case "interrupted":
      return { ...ended, state: "input-required", interrupts: outcome.interrupts };
    case "failed":
      return { ...ended, state: "failed", run: { ...ended.run, error: { ...outcome.error } } };
    default:
      return { ...ended, state: outcome.kind };
  }
};
const valuesOf = (outcome: Outcome): JsonObject => (outcome.kind === "failed" ? {} : outcome.values);

/** Reads tasks: as they are, as they end, and each event until then. */
export const createReading = (calls: CallService) => {
  const outcomeOf = (
    { caller, signal }: TaskReader,
    { task, created }: Pick<Accepted, "task" | "created">,
  ): Promise<Outcome> =>
    created === undefined
      ? calls.outcomes.of(caller, selectorOf(task), { signal, caller })
      : calls.outcomes.ofCreated(created, { signal, caller });

  /** A task as it is now. */
  const snapshot = async (
    request: TaskReader,
    task: Task,
    historyLength: number | undefined,
    withArtifacts = true,
  ): Promise<A2aTask> => {
    const { caller, signal } = request;
    if (historyLength === 0 && !withArtifacts) return toA2aTask(task, undefined);
    if (task.state === "submitted" || task.state === "working") {
      if (historyLength === 0) return toA2aTask(task, undefined);
      const values = await calls.outcomes.soFar(caller, selectorOf(task), signal);
      return toA2aTask(task, values, { historyLength, withArtifacts: false });
    }
    const outcome = await outcomeOf(request, { task, created: undefined });
    return toA2aTask(task, valuesOf(outcome), { historyLength, withArtifacts });
  };

  /** Whether the messages of models are part of what the graph returns. */
  const returnsMessages = async ({ caller, assistantId }: AgentRequest): Promise<boolean> => {
    const { outputKeys } = await calls.assistants.describe(caller, assistantId);
    return outputKeys?.includes("messages") ?? true;
  };

  async function* updates(request: AgentRequest, accepted: Accepted): AsyncGenerator<StreamResponse> {
    const { caller, signal } = request;
    const { task, created } = accepted;
    const selector = selectorOf(task);
    const artifacts = createArtifactUpdates(task);
    if (task.run.resumable) {
      const reader =
        created === undefined
          ? await calls.joining.read(caller, selector, { after: -1, checkpointId: undefined })
          : calls.joining.readCreated(caller, created);
      const close = (): void => reader.close();
      signal.addEventListener("abort", close);
      if (signal.aborted) close();
      try {
        const events = eventsOf(reader, calls.threads.slicer);
        let isWorking = false;
        let isShown: boolean | undefined;
        let next = await events.next();
        for (; next.done !== true; next = await events.next()) {
          if (!isWorking) yield statusEvent({ ...task, state: "working" });
          isWorking = true;
          if (next.value.event !== "messages") continue;
          // The task ends with the whole artifact in any case.
          isShown ??= await returnsMessages(request).catch(() => false);
          const update = isShown ? artifacts.of(next.value) : undefined;
          if (update !== undefined) yield update;
        }
        if (next.value === "lost") throw new StreamLostError("The events of a stream are missing.");
      } finally {
        signal.removeEventListener("abort", close);
        close();
      }
    }
    signal.throwIfAborted();
    const outcome = await outcomeOf(request, accepted);
    signal.throwIfAborted();
    const now = await calls.tasks.find(caller, task.id).catch(() => undefined);
    const ended = endedAs(
      task,
      outcome,
      now?.run.run_id === task.run.run_id ? now.run.updated_at : new Date(),
    );
    const last = artifacts.last(ended, valuesOf(outcome));
    if (last !== undefined) yield last;
    yield statusEvent(ended);
  }

  return {
    snapshot,
    updates,

    /** Waits for the end of a task, or until it waits for input. */
    async end(
      request: AgentRequest,
      accepted: Accepted,
      historyLength: number | undefined,
    ): Promise<A2aTask> {
      const outcome = await outcomeOf(request, accepted);
      return toA2aTask(endedAs(accepted.task, outcome, new Date()), valuesOf(outcome), { historyLength });
    },
  };
};
