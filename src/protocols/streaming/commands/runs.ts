import type { Caller } from "../../../access/caller.ts";
import { isPassing } from "../../../platform/database/passing-faults.ts";
import {
  CallerGoneError,
  HandlerRefusal,
  ThreadloomError,
  type Missing,
} from "../../../platform/domain/errors.ts";
import { refusalOf as refusalOverHttp } from "../../../http/errors.ts";
import {
  forkParams,
  respondParams,
  respondUpdate,
  type CommandAnswer,
  type CommandEnvelope,
  type ErrorCode,
} from "../schemas.ts";
import type { Authorize } from "../../../access/authorize.ts";
import { beforeTurn } from "../../../engine/events/event-ids.ts";
import { validated } from "../../../http/validation.ts";
import type { JsonObject, JsonValue } from "../../../platform/lib/json.ts";
import { runBody, type RunBody } from "../../../api/runs/schemas.ts";
import type { RunService } from "../../../api/runs/service.ts";
import type { Interrupt } from "../reading/ends.ts";
import type { NewestRun, StreamingRepository, ThreadStanding } from "../repository.ts";

export interface CommandSender {
  caller: Caller;
  threadId: string;
  /** Headers for the configuration of runs. */
  headers: Readonly<Record<string, string>> | undefined;
  /** Receives faults of the server, whose details the answer hides. */
  onFault: (error: unknown) => void;
  /** Aborts with a `CallerGoneError` when the sender has left. */
  signal: AbortSignal;
}

const CREATING_RUNS = new Set(["run.start", "input.respond", "state.fork"]);
export const createsRun = ({ method }: CommandEnvelope): boolean => CREATING_RUNS.has(method);

/** Over HTTP, the answer has status 200. */
export class CommandError extends Error {
  constructor(
    readonly code: ErrorCode,
    message: string,
  ) {
    super(message);
    this.name = "CommandError";
  }
}

const MISSING: Record<Missing, ErrorCode> = {
  assistant: "invalid_argument",
  graph: "invalid_argument",
  thread: "no_such_run",
  run: "no_such_run",
  checkpoint: "no_such_checkpoint",
};

const codeOf = ({ kind, missing }: ThreadloomError): ErrorCode => {
  switch (kind) {
    case "not_found":
      return missing === undefined ? "invalid_argument" : MISSING[missing];
    case "unauthenticated":
    case "forbidden":
      return "permission_denied";
    case "too_many":
    case "unavailable":
      return "unknown_error";
    default:
      return "invalid_argument";
  }
};

/** Errors with an HTTP status, so that clients can repeat the request or authenticate. */
export const isForHttp = (error: unknown): boolean =>
  error instanceof CallerGoneError ||
  error instanceof HandlerRefusal ||
  isPassing(error) ||
  (error instanceof ThreadloomError &&
    (["unauthenticated", "forbidden", "unavailable", "too_large", "too_many"].includes(error.kind) ||
      error.missing === "assistant" ||
      error.missing === "graph"));

export const refusalOf = (id: number, error: unknown, onFault: (error: unknown) => void): CommandAnswer => {
  if (error instanceof CommandError) return { type: "error", id, error: error.code, message: error.message };
  if (error instanceof ThreadloomError) {
    return { type: "error", id, error: codeOf(error), message: error.message };
  }
  if (error instanceof HandlerRefusal) {
    return { type: "error", id, error: "permission_denied", message: error.message };
  }
  // The database module logs its own outage, and an unstorable value is the caller's fault.
  const refusal = refusalOverHttp(error);
  if (refusal !== undefined) {
    const code = refusal.status === 503 ? "unknown_error" : "invalid_argument";
    return { type: "error", id, error: code, message: refusal.detail };
  }
  onFault(error);
  const message = "The server could not do this; its log says why.";
  return { type: "error", id, error: "unknown_error", message };
};

/** `appliedThroughSeq`: the last event id of the thread before the command's first event. */
export interface Done {
  result: JsonObject;
  appliedThroughSeq?: number;
}

const PARAMS = "The params";
/** Tries after another run was created on the thread. */
const TRIES_AT_MOST = 10;

const interruptsOf = ({ interrupts }: ThreadStanding): Interrupt[] =>
  Object.values(interrupts).flat() as Interrupt[];

const namesCheckpoint = ({ config, checkpoint, checkpoint_id }: RunBody): boolean =>
  checkpoint !== undefined ||
  checkpoint_id !== undefined ||
  (config?.configurable as JsonObject | undefined)?.checkpoint_id !== undefined;

/** JavaScript's RemoteGraph sends a `Command` as the input. */
const commandIn = (input: JsonValue | undefined): JsonObject | undefined => {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return undefined;
  const { lg_name: className, ...command } = input;
  return className === "Command" ? command : undefined;
};

/** The JavaScript SDK sends both spellings. */
const startBody = (params: JsonObject): RunBody => {
  const { multitaskStrategy, multitask_strategy = multitaskStrategy, ...rest } = params;
  const command = commandIn(rest["input"]);
  const asked = command === undefined ? rest : { ...rest, input: null, command };
  const body = { ...asked, multitask_strategy, if_not_exists: "create", stream_mode: ["values"] };
  return validated(runBody, body, PARAMS);
};

export const createRunCommands = (
  authorize: Authorize,
  repository: StreamingRepository,
  creation: RunService["creation"],
) => {
  const standingOf = async (caller: Caller, threadId: string): Promise<ThreadStanding | undefined> =>
    await repository.standing(await authorize(caller, "threads", "read", { thread_id: threadId }), threadId);

  const create = async (
    { caller, threadId, headers }: CommandSender,
    body: RunBody,
    standing: ThreadStanding | undefined,
    turnsSeen?: number,
  ): Promise<{ runId: string; appliedThroughSeq: number }> => {
    const how = { eventStreaming: true, turnsSeen, headers };
    const { row } = await creation.createOnThread(caller, threadId, body, how);
    const before = row.turn > 0 ? row.turn - 1 : (standing?.begun ?? 0);
    return { runId: row.run_id, appliedThroughSeq: before === 0 ? 0 : beforeTurn(before + 1) };
  };

  const knownThread = async (
    caller: Caller,
    threadId: string,
  ): Promise<{ standing: ThreadStanding; newest: NewestRun }> => {
    const standing = await standingOf(caller, threadId);
    const newest = standing && (await repository.newestRun(threadId));
    if (standing === undefined || newest === undefined)
      throw new CommandError("no_such_run", `Thread '${threadId}' has no run.`);
    return { standing, newest };
  };

  /** The second answer to an interrupt is refused, even after the end of the first answer's run. */
  const createAnswering = async (
    sender: CommandSender,
    body: RunBody,
    standing: ThreadStanding,
  ): Promise<Done> => {
    const turnsSeen = body.strict_resume === true ? undefined : standing.turns;
    try {
      const { runId, appliedThroughSeq } = await create(sender, body, standing, turnsSeen);
      return { result: { run_id: runId }, appliedThroughSeq };
    } catch (error) {
      if (!(error instanceof ThreadloomError) || error.kind !== "conflict") throw error;
      throw new CommandError(
        "no_such_interrupt",
        "Another run has begun on the thread: the interrupt was answered, or another one is.",
      );
    }
  };

  return {
    /** `run.start`. On an interrupted thread the input is the answer, unless the body names a checkpoint. */
    async start(sender: CommandSender, params: JsonObject): Promise<Done> {
      const { caller, threadId } = sender;
      const body = startBody(params);
      const mayAnswer = body.input != null && body.command === undefined && !namesCheckpoint(body);
      for (let tries = 1; ; tries += 1) {
        const standing = await standingOf(caller, threadId);
        const isAnswer = mayAnswer && standing?.status === "interrupted" && interruptsOf(standing).length > 0;
        const asked = isAnswer ? { ...body, command: { resume: body.input } } : body;
        const turnsSeen = isAnswer ? standing.turns : undefined;
        try {
          const made = await create(sender, asked as RunBody, standing, turnsSeen);
          return { result: { run_id: made.runId }, appliedThroughSeq: made.appliedThroughSeq };
        } catch (error) {
          // Another caller has answered, so this input starts an ordinary run.
          const isMoved = isAnswer && error instanceof ThreadloomError && error.kind === "conflict";
          if (!isMoved || tries === TRIES_AT_MOST) throw error;
        }
      }
    },

    /**
     * `input.respond`, with the interrupted run's assistant. With `strict_resume`, an answer without an interrupt
     * becomes a failing run: SDK 1.15 reads the refusal from the run's end.
     */
    async respond(sender: CommandSender, params: JsonObject): Promise<Done> {
      const { caller, threadId } = sender;
      const { responses } = validated(respondParams, params, PARAMS);
      const more = validated(respondUpdate, params, PARAMS);
      const { standing, newest } = await knownThread(caller, threadId);
      const isStrict = params["strict_resume"] === true;
      const waiting = new Set(interruptsOf(standing).map(({ id }) => id));
      const unknown = responses.find(({ interrupt_id: id }) => !waiting.has(id));
      if (!isStrict && (standing.status !== "interrupted" || unknown !== undefined)) {
        const id = (unknown ?? responses[0])?.interrupt_id;
        throw new CommandError("no_such_interrupt", `Interrupt '${id}' does not wait for an answer.`);
      }
      const resume = Object.fromEntries(
        responses.map(({ interrupt_id: id, response }) => [id, response ?? null]),
      );
      const { config, context, metadata, interrupt_before, interrupt_after } = params;
      const body = {
        ...{ assistant_id: newest.assistantId, config, context, metadata, stream_mode: ["values"] },
        ...{ interrupt_before, interrupt_after },
        ...{ command: { ...more, resume }, strict_resume: isStrict },
        multitask_strategy: isStrict ? "enqueue" : "reject",
      };
      return await createAnswering(sender, validated(runBody, body, PARAMS), standing);
    },

    /** `state.fork` */
    async fork(sender: CommandSender, params: JsonObject): Promise<Done> {
      const { caller, threadId } = sender;
      const { checkpoint_id, input, config } = validated(forkParams, params, PARAMS);
      const { standing, newest } = await knownThread(caller, threadId);
      const body = {
        assistant_id: newest.assistantId,
        input,
        config,
        checkpoint_id,
        stream_mode: ["values"],
      };
      const made = await create(sender, validated(runBody, body, PARAMS), standing);
      return {
        result: { run_id: made.runId, thread_id: threadId },
        appliedThroughSeq: made.appliedThroughSeq,
      };
    },
  };
};

export type RunCommands = ReturnType<typeof createRunCommands>;
