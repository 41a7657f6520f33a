import type { Caller } from "../../access/caller.ts";
import type { AssistantService } from "../../api/assistants/service.ts";
import { conflict, invalid, ThreadloomError } from "../../platform/domain/errors.ts";
import { isUuid, newId } from "../../platform/lib/ids.ts";
import type { JsonObject, JsonValue } from "../../platform/lib/json.ts";
import { ownField } from "../../platform/lib/names.ts";
import { hasOwnField, RESUME, THREAD_ID } from "./tools/schemas.ts";
import { setTimeout } from "node:timers/promises";
import type { CallToolResult, InputRequiredResult } from "@modelcontextprotocol/server";
import type { CreatedRun } from "../../api/runs/joining/results.ts";
import type { Outcome } from "../calls/outcome.ts";
import type { CallService } from "../calls/service.ts";
import type { Call } from "../calls/start.ts";
import { taskIdOf, type Task } from "../calls/tasks.ts";
import {
  createProgressReporter,
  usesTasks,
  type Client,
  type Exchange,
  type OnProgress,
} from "./exchange.ts";
import { answersOf, errorResult, inputRequestsOf, mayAsk, resultOf, type Place } from "./results.ts";
import { createdTask, type CreatedTask } from "./tasks.ts";

/** The parts of a call's arguments: fields of the server, and the input of the graph. */
interface Arguments {
  threadId: string | undefined;
  resume: JsonValue | undefined;
  input: JsonObject;
}

export const createArgumentReader =
  ({ schemas: schemasOf }: Pick<AssistantService, "schemas">) =>
  async (
    caller: Caller,
    { assistantId, arguments: given }: { assistantId: string; arguments: JsonObject },
  ): Promise<Arguments> => {
    const own = [THREAD_ID, RESUME].filter((name) => Object.hasOwn(given, name));
    if (own.length === 0) return { threadId: undefined, resume: undefined, input: given };
    // The graph's input may have fields of these names.
    const schemas = await schemasOf(caller, assistantId);
    const input = { ...given };
    const take = (name: string): JsonValue | undefined => {
      if (!own.includes(name) || hasOwnField(schemas, name)) return undefined;
      delete input[name];
      return ownField(given, name) ?? undefined;
    };
    const [threadId, resume] = [take(THREAD_ID), take(RESUME)];
    if (threadId === undefined) {
      if (resume !== undefined) throw invalid("'resume' needs the 'thread_id' of the call that asked.");
      return { threadId, resume, input };
    }
    if (typeof threadId !== "string" || !isUuid(threadId)) throw invalid("'thread_id' must be a UUID.");
    return { threadId, resume, input };
  };

export interface ToolCall {
  assistantId: string;
  arguments: JsonObject;
  client: Client;
  /** Of an `input_required` result that the client answers. */
  requestState: string | undefined;
  inputResponses: Readonly<Record<string, unknown>> | undefined;
  /** Undefined: the client wants no progress. */
  onProgress: OnProgress | undefined;
}

export type ToolResult = CallToolResult | InputRequiredResult | CreatedTask;

/** Clients poll for the results of longer runs. */
const HANDLE_AFTER_MS = 500;

/** Names the question: a task may ask several. */
const stateOf = ({ id, turns }: Task): string => `${id}.${turns}`;

/** Mistakes that a model can correct are results, so that it reads them. */
const isForModel = (error: unknown): error is ThreadloomError =>
  error instanceof ThreadloomError && ["conflict", "invalid", "too_large"].includes(error.kind);

export const createCalling = (calls: CallService, taskTtlMs: number | null) => {
  const argumentsOf = createArgumentReader(calls.assistants);
  const report = createProgressReporter(calls.joining);

  const outcomeOf = async (
    created: CreatedRun,
    call: ToolCall,
    exchange: Exchange,
    waiting: AbortSignal = exchange.signal,
  ): Promise<Outcome> => {
    const selector = { threadId: created.row.thread_id, runId: created.row.run_id };
    if (call.client.cancelsByLeaving) {
      exchange.onLeave(() => {
        calls.cancellation
          .abandon(created)
          .catch((error: unknown) =>
            exchange.onFault(error, "a call that its client left could not be cancelled"),
          );
      });
    }
    const access = exchange.holdAccess((caller) => calls.joining.assertStill(caller, selector));
    const signal = AbortSignal.any([exchange.signal, access.signal, waiting]);
    try {
      if (call.onProgress !== undefined) await report(created, call.onProgress, exchange, signal);
      return await calls.outcomes.ofCreated(created, { signal, caller: exchange.caller });
    } finally {
      access.release();
    }
  };

  const start = async (
    call: ToolCall,
    exchange: Exchange,
    run: Pick<Call, "threadId" | "taskRunId" | "turnsSeen"> & {
      body: Pick<Call["body"], "input" | "command">;
    },
  ): Promise<CreatedRun> => {
    const created = await calls.start({
      ...run,
      caller: exchange.caller,
      origin: "mcp",
      assistantId: call.assistantId,
      body: { ...run.body, stream_mode: call.onProgress === undefined ? [] : ["steps"] },
      streamed: call.onProgress !== undefined,
      headers: exchange.headers,
    });
    exchange.begin();
    return created;
  };

  /** Waits for the run, and asks the client if the graph has asked. `firstRunId`: of the task. */
  const answerOf = async (
    created: CreatedRun,
    call: ToolCall,
    exchange: Exchange,
    { firstRunId, isKept }: { firstRunId: string; isKept: boolean },
  ): Promise<ToolResult> => {
    const { thread_id: threadId, run_id } = created.row;
    const place: Place = { run_id, thread_id: isKept ? threadId : undefined };
    const outcome = await outcomeOf(created, call, exchange);
    if (outcome.kind !== "interrupted" || !isKept || !mayAsk(call.client.capabilities))
      return resultOf(outcome, place);
    const task = await calls.tasks.find(exchange.caller, taskIdOf({ threadId, runId: firstRunId }));
    // Another run has continued the thread already.
    if (task.state !== "input-required") return resultOf(outcome, place);
    return questionOf(task, place);
  };

  const questionOf = (task: Task, place: Place): InputRequiredResult => ({
    resultType: "input_required",
    inputRequests: inputRequestsOf(task),
    requestState: stateOf(task),
    _meta: { ...place },
  });

  /** Of a task. A short run is answered at once. */
  const handleOf = async (created: CreatedRun, call: ToolCall, exchange: Exchange): Promise<ToolResult> => {
    const { thread_id, run_id } = created.row;
    const waiting = new AbortController();
    const late = setTimeout(HANDLE_AFTER_MS, undefined, { signal: waiting.signal }).catch(() => undefined);
    try {
      const outcome = await Promise.race([outcomeOf(created, call, exchange, waiting.signal), late]);
      const isResult = outcome?.kind === "completed" || outcome?.kind === "failed";
      return isResult ? resultOf(outcome, { run_id, thread_id }) : createdTask(created, taskTtlMs);
    } finally {
      waiting.abort();
    }
  };

  const goOn = async (call: ToolCall, requestState: string, exchange: Exchange): Promise<ToolResult> => {
    const task = await calls.tasks.find(exchange.caller, requestState.replace(/\.\d+$/, ""), "mcp");
    if (task.run.assistant_id !== call.assistantId) throw invalid("'requestState' belongs to another tool.");
    const { threadId, firstRunId, turns } = task;
    const place: Place = { run_id: task.run.run_id, thread_id: threadId };
    if (task.state !== "input-required" || requestState !== stateOf(task))
      throw conflict("The question has been answered, or the thread has gone on.");
    const { resume, isDeclined } = answersOf(task, call.inputResponses);
    if (isDeclined) return errorResult("The user did not answer the question; nothing more was done.", place);
    if (Object.keys(resume).length === 0) return questionOf(task, place);
    const created = await start(call, exchange, {
      threadId,
      taskRunId: firstRunId,
      turnsSeen: turns,
      body: { command: { resume } },
    });
    return await answerOf(created, call, exchange, { firstRunId, isKept: true });
  };

  const begin = async (call: ToolCall, exchange: Exchange): Promise<ToolResult> => {
    const { threadId, resume, input } = await argumentsOf(exchange.caller, call);
    const isTask = usesTasks(call.client);
    const isKept = threadId !== undefined || isTask || mayAsk(call.client.capabilities);
    const asked = isTask ? { ...call, onProgress: undefined } : call;
    const created = await start(asked, exchange, {
      threadId: threadId ?? (isKept ? newId() : undefined),
      body: resume === undefined ? { input } : { command: { resume } },
    });
    if (isTask) return await handleOf(created, asked, exchange);
    return await answerOf(created, call, exchange, { firstRunId: created.row.run_id, isKept });
  };

  return {
    /** Throws the errors of the API, except those that a model can correct. */
    async call(call: ToolCall, exchange: Exchange): Promise<ToolResult> {
      try {
        const { requestState } = call;
        return requestState === undefined
          ? await begin(call, exchange)
          : await goOn(call, requestState, exchange);
      } catch (error) {
        if (isForModel(error)) return errorResult(error.message);
        throw error;
      }
    },
  };
};

export type Calling = ReturnType<typeof createCalling>;
