import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import type { CreatedRun } from "../../api/runs/joining/results.ts";
import type { RunSelector } from "../../engine/queue/attempts.ts";
import type { RunReader } from "../../engine/events/readers/channel-reader.ts";
import type { EventReader } from "../../engine/events/transports/event-sink.ts";
import type { RunAgentInput } from "@ag-ui/core";
import type { Database } from "../../platform/database/database.ts";
import { isJsonObject, type JsonObject } from "../../platform/lib/json.ts";
import { runNotFound, ThreadChangedError } from "../../platform/domain/errors.ts";
import { LARGE_ANSWER_BYTES } from "../../http/large-answers.ts";
import type { CallService } from "../calls/service.ts";
import type { Call } from "../calls/start.ts";
import { createInputReader, type AgentInput } from "./schemas.ts";
import { planOf, sortedIds, type Plan, type PlanInput } from "./plan.ts";
import { createRefusal, createAgUiReader } from "./reader.ts";
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
  selector?: RunSelector;
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

      const read = (
        selector: RunSelector,
        run: RunReader | undefined,
        outcome = async (gone: AbortSignal) =>
          await calls.outcomes.of(caller, selector, { signal: gone, caller, isWhole: true }),
      ): EventReader =>
        createAgUiReader({
          translation,
          run,
          reopen: async (after) =>
            await calls.joining.read(caller, selector, { after, checkpointId: undefined }),
          slicer,
          outcome,
        });

      const join = async ({ runId, status }: FoundRun): Promise<Opened> => {
        const selector = { threadId, runId };
        const isOver = status !== "pending" && status !== "running";
        // From the first event: the snapshots before it replace what the client has of the run.
        const run = isOver
          ? undefined
          : await calls.joining.read(caller, selector, { after: -1, checkpointId: undefined });
        return { reader: read(selector, run), selector };
      };

      const show = ({ values, runs }: Extract<Plan, { kind: "show" }>): Opened => {
        const interrupts = runs?.interrupts ?? [];
        const outcome =
          interrupts.length > 0
            ? ({ kind: "interrupted", values, interrupts } as const)
            : ({ kind: "completed", values } as const);
        return {
          reader: createAgUiReader({ translation, run: undefined, slicer, outcome: async () => outcome }),
        };
      };

      let isSpent = false;
      const start = async ({ body: run, turnsSeen }: Extract<Plan, { kind: "start" }>): Promise<Opened> => {
        if (!isSpent) request.spend();
        isSpent = true;
        const call: Call = {
          caller,
          origin: "agui",
          assistantId,
          threadId,
          body: run,
          turnsSeen,
          streamed: true,
        };
        const created = await calls.start({ ...call, headers });
        const selector = { threadId, runId: created.row.run_id };
        const outcome = async (gone: AbortSignal) =>
          await calls.outcomes.ofCreated(created, { signal: gone, caller, isWhole: true });
        return {
          reader: read(selector, calls.joining.readCreated(caller, created), outcome),
          selector,
          created,
        };
      };

      const attempt = async (): Promise<Opened> => {
        const { characters, ...planInput } = await planInputOf(request, input, keys);
        const plan = planOf(planInput);
        if (plan.kind === "join") return await join(plan.run);
        if (plan.kind === "show") {
          if (characters > LARGE_ANSWER_BYTES) request.countUnread(characters);
          return show(plan);
        }
        if (plan.kind === "refuse") return { reader: createRefusal(translation, plan.message, plan.code) };
        return await start(plan);
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
