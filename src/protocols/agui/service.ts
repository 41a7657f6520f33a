import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import type { CreatedRun } from "../../api/runs/joining/results.ts";
import type { RunSelector } from "../../engine/queue/attempts.ts";
import type { RunReader } from "../../engine/events/channel.ts";
import type { EventReader } from "../../engine/events/transports/event-sink.ts";
import type { RunAgentInput } from "@ag-ui/core";
import type { Database } from "../../platform/database/database.ts";
import { isJsonObject, type JsonObject } from "../../platform/lib/json.ts";
import { runNotFound, ThreadChangedError } from "../../platform/domain/errors.ts";
import { LARGE_ANSWER_BYTES } from "../../http/large-answers.ts";
import type { CallService } from "../calls/service.ts";
import type { Call } from "../calls/start.ts";
import type { Outcome } from "../calls/outcome.ts";
import { createInputReader, type AgentInput } from "./schemas.ts";
import { planOf, sortedIds, type Plan, type PlanInput } from "./plan.ts";
import { createAgUiReader } from "./reader.ts";
import { createAgUiRepository, type FoundRun } from "./repository.ts";
import { inputKeys, type Keys } from "./run-body.ts";
import { createTranslation } from "./translation.ts";

export interface AgUiRequest {
  caller: Caller;
  assistantId: string;
  headers: Call["headers"];
  /** Called for a large state that the stream holds. */
  countUnread(bytes: number): void;
  signal: AbortSignal;
  /** Called before a run is created. */
  spend(): void;
}

export interface Opened {
  reader: EventReader;
  /** Set if the client reads a run. */
  selector?: RunSelector | undefined;
  /** Set if this request created it. */
  created?: CreatedRun;
}

/** Tries after another request created a run on the thread. */
const TRIES_AT_MOST = 10;

export interface AgUiServiceParts {
  database: Database;
  authorize: Authorize;
  calls: CallService;
}

export const createAgUiService = ({ database, authorize, calls }: AgUiServiceParts) => {
  const repository = createAgUiRepository(database);
  const { slicer } = calls.threads;
  const readInput = createInputReader();

  const stateOf = async ({ caller, signal }: AgUiRequest, threadId: string) => {
    const text = await calls.threads.states.read(caller, threadId, { select: ["values"] }, signal);
    const { values } = JSON.parse(text) as { values?: JsonObject | null };
    return { values: isJsonObject(values) ? values : {}, characters: text.length };
  };

  const planInputOf = async (
    request: AgUiRequest,
    input: RunAgentInput,
    keys: Keys,
  ): Promise<PlanInput & { characters: number }> => {
    const { caller } = request;
    const { threadId, runId: clientRunId, resume } = input;
    const visibility = await authorize(caller, "threads", "read", { thread_id: threadId });
    const answers = resume && sortedIds(resume.map(({ interruptId }) => interruptId));
    const runs = await repository.threadRuns(visibility, threadId, { clientRunId, answers });
    // The state comes after the runs: a run that ended in between has stored its messages.
    const state = runs?.same === null ? await stateOf(request, threadId) : { values: {}, characters: 0 };
    return { input, runs, keys, ...state };
  };

  return {
    /** Starts a run, joins the one in progress, or shows the thread. Throws the errors of the API. */
    async open(request: AgUiRequest, body: AgentInput): Promise<Opened> {
      const { caller, assistantId, headers, signal } = request;
      // Throws for a hidden assistant before anything else is looked at.
      const { schemas, outputKeys } = await calls.assistants.describe(caller, assistantId);
      const keys = inputKeys(schemas.input_schema);
      const input = await readInput(body);
      const { threadId } = input;
      const translation = createTranslation(input, { slicer, outputKeys });

      const opened = (
        run: RunReader | undefined,
        outcome: (gone: AbortSignal) => Promise<Outcome>,
        selector?: RunSelector,
      ): Opened => {
        const from = (after: number) =>
          calls.joining.read(caller, selector!, { after, checkpointId: undefined });
        const reopen = selector && from;
        return { reader: createAgUiReader({ translation, run, reopen, slicer, outcome }), selector };
      };

      const join = async ({ runId, status }: FoundRun): Promise<Opened> => {
        const selector = { threadId, runId };
        const isOver = status !== "pending" && status !== "running";
        // From the first event: the snapshots before it replace what the client has of the run.
        const from = { after: -1, checkpointId: undefined };
        const run = isOver ? undefined : await calls.joining.read(caller, selector, from);
        const outcome = (signal: AbortSignal) =>
          calls.outcomes.of(caller, selector, { signal, caller, isWhole: true });
        return opened(run, outcome, selector);
      };

      let isSpent = false;
      const start = async ({ body: run, turnsSeen }: Extract<Plan, { kind: "start" }>): Promise<Opened> => {
        if (!isSpent) request.spend();
        isSpent = true;
        const created = await calls.start({
          ...{ caller, origin: "agui", assistantId, threadId, headers },
          ...{ body: run, turnsSeen, streamed: true },
        });
        const selector = { threadId, runId: created.row.run_id };
        const outcome = (signal: AbortSignal) =>
          calls.outcomes.ofCreated(created, { signal, caller, isWhole: true });
        return { ...opened(calls.joining.readCreated(caller, created), outcome, selector), created };
      };

      const attempt = async (): Promise<Opened> => {
        const { characters, ...planInput } = await planInputOf(request, input, keys);
        const plan = planOf(planInput);
        switch (plan.kind) {
          case "join":
            return await join(plan.run);
          case "start":
            return await start(plan);
          default:
            if (characters > LARGE_ANSWER_BYTES) request.countUnread(characters);
            return opened(undefined, async () => plan.outcome);
        }
      };

      for (let tries = 1; ; tries += 1) {
        try {
          return await attempt();
        } catch (error) {
          if (!(error instanceof ThreadChangedError) || tries >= TRIES_AT_MOST) throw error;
          signal.throwIfAborted();
        }
      }
    },

    /** Rejects if the caller may no longer read the run. */
    async assertStill(caller: Caller, selector: RunSelector): Promise<void> {
      await calls.joining.assertStill(caller, selector);
    },

    abandon: (created: CreatedRun): Promise<void> => calls.cancellation.abandon(created),

    /** Cancels the run of the client's run id, or all unfinished runs of the thread. Throws `runNotFound`. */
    async cancel(caller: Caller, threadId: string, clientRunId: string | undefined): Promise<void> {
      if (clientRunId === undefined) {
        await calls.cancellation.cancelMany(caller, { threadId, status: "all" }, "interrupt");
        return;
      }
      const visibility = await authorize(caller, "threads", "read", { thread_id: threadId });
      const runs = await repository.threadRuns(visibility, threadId, { clientRunId, answers: undefined });
      const runId = runs?.same?.runId;
      if (runId === undefined) throw runNotFound(clientRunId);
      const how = { action: "interrupt", reason: "requested" } as const;
      await calls.cancellation.cancel(caller, { threadId, runId }, how, undefined);
    },
  };
};

export type AgUiService = ReturnType<typeof createAgUiService>;
