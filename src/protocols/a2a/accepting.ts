import { Role, type Message, type SendMessageRequest } from "@a2a-js/sdk";
import { RequestMalformedError, UnsupportedOperationError } from "@a2a-js/sdk/errors";
import type { CreatedRun } from "../../api/runs/joining/results.ts";
import { assistantIdOf } from "../../platform/domain/assistant-ids.ts";
import { taskNotFound, ThreadChangedError } from "../../platform/domain/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { CallService } from "../calls/service.ts";
import { ORIGIN } from "../calls/start.ts";
import type { Task } from "../calls/tasks.ts";
import { inputOf, resumeOf } from "./messages.ts";
import { contextIdOf, historyLengthOf } from "./parameters.ts";
import type { Context, TaskRepository } from "./repository.ts";
import type { PushConfigs } from "./push-configs.ts";
import type { AgentRequest, Version } from "./request.ts";
import { FIRST_MESSAGE_ID, MESSAGE_ID, selectorOf, TERMINAL } from "./tasks.ts";

const MESSAGE_ID_AT_MOST = 500;
/** Of messages to one context at once, each try stores at least one. */
const TRIES_AT_MOST = 100;

/** A task whose run is to be awaited. `created`: undefined if the message was known already. */
export interface Accepted {
  task: Task;
  created: CreatedRun | undefined;
}

/** The log keeps the events of such a run for clients that subscribe later. */
const streamingOf = (isStreamed: boolean) => ({
  stream_mode: isStreamed ? ["messages-tuple"] : [],
  stream_resumable: isStreamed,
});

const taskOfCreated = ({ row }: CreatedRun, firstRunId: string): Task => ({
  ...{ id: `${row.thread_id}:${firstRunId}`, threadId: row.thread_id, firstRunId },
  ...{ state: row.status === "pending" ? "submitted" : "working", run: row, interrupts: [], turns: 0 },
});

/** Takes messages: each starts a task, or answers one that waits for input. */
export const createAccepting = (calls: CallService, repository: TaskRepository, pushConfigs: PushConfigs) => {
  const find = async ({ caller, assistantId }: AgentRequest, id: unknown): Promise<Task> => {
    if (typeof id !== "string") throw new RequestMalformedError("The id of a task must be a string.");
    const task = await calls.tasks.find(caller, id);
    const isOfAgent = task.run.assistant_id === assistantIdOf(assistantId);
    if (!isOfAgent || task.run.metadata[ORIGIN] !== "a2a") throw taskNotFound();
    return task;
  };

  /** Starts the run that answers a task's interrupts. */
  const resume = async (request: AgentRequest, message: Message, isStreamed: boolean): Promise<Accepted> => {
    const task = await find(request, message.taskId);
    const contextId = contextIdOf(message.contextId);
    if (contextId !== undefined && contextId !== task.threadId)
      throw new RequestMalformedError("'contextId' is not the context of this task.");
    if (task.run.metadata[MESSAGE_ID] === message.messageId) return { task, created: undefined };
    if (task.state !== "input-required") {
      const why = TERMINAL.has(task.state) ? "has ended" : "is still working";
      throw new UnsupportedOperationError(`The task ${why}, so it takes no message.`);
    }
    const firstMessageId = task.run.metadata[FIRST_MESSAGE_ID] ?? message.messageId;
    const created = await calls.start({
      ...{ caller: request.caller, origin: "a2a", assistantId: request.assistantId },
      ...{ threadId: task.threadId, taskRunId: task.firstRunId, turnsSeen: task.turns },
      body: {
        command: { resume: resumeOf(message, task.interrupts), update: undefined, goto: undefined },
        metadata: { [MESSAGE_ID]: message.messageId, [FIRST_MESSAGE_ID]: firstMessageId },
        ...streamingOf(isStreamed),
      },
      ...{ streamed: isStreamed, headers: request.headers },
    });
    return { task: taskOfCreated(created, task.firstRunId), created };
  };

  /** A message of the context's newest run is known; undefined for another. */
  const known = async (
    request: AgentRequest,
    { messageId }: Message,
    { newest }: Context,
  ): Promise<Accepted | undefined> => {
    if (newest === undefined || newest.assistantId !== assistantIdOf(request.assistantId)) return undefined;
    if (newest.metadata[MESSAGE_ID] !== messageId || newest.metadata[ORIGIN] !== "a2a") return undefined;
    return { task: await find(request, newest.taskId), created: undefined };
  };

  const begin = async (request: AgentRequest, message: Message, isStreamed: boolean): Promise<Accepted> => {
    const { caller, assistantId } = request;
    const contextId = contextIdOf(message.contextId);
    const schema = async () => (await calls.assistants.schemas(caller, assistantId)).input_schema;
    for (let tries = 1; ; tries += 1) {
      const context = contextId === undefined ? undefined : await repository.context(caller, contextId);
      const before = context && (await known(request, message, context));
      if (before !== undefined) return before;
      try {
        const created = await calls.start({
          ...{
            caller,
            origin: "a2a",
            assistantId,
            threadId: contextId ?? newId(),
            turnsSeen: context?.turns,
          },
          body: {
            input: await inputOf(message, schema),
            metadata: { [MESSAGE_ID]: message.messageId, [FIRST_MESSAGE_ID]: message.messageId },
            ...streamingOf(isStreamed),
          },
          ...{ streamed: isStreamed, headers: request.headers },
        });
        return { task: taskOfCreated(created, created.row.run_id), created };
      } catch (error) {
        if (!(error instanceof ThreadChangedError) || tries === TRIES_AT_MOST) throw error;
        request.signal.throwIfAborted();
      }
    }
  };

  /** Returns how to store the configuration of push notifications that the message has. */
  const preparePush = async (
    request: AgentRequest,
    version: Version,
    { message, configuration }: SendMessageRequest,
  ): Promise<((task: Task) => Promise<void>) | undefined> => {
    const given = configuration?.taskPushNotificationConfig;
    if (message === undefined || given === undefined) return undefined;
    const { messageId, contextId, taskId } = message;
    const task = taskId === "" ? undefined : await find(request, taskId);
    return await pushConfigs.prepared(request, given, {
      ...{ version, ownId: messageId, task },
      threadId: task?.threadId ?? contextIdOf(contextId),
    });
  };

  return {
    /** A task of the agent. Throws `not_found`. */
    find,

    /** Cancels a task that waits for input: its newest run is then one that was cancelled before it began. */
    async giveUp({ caller, headers }: AgentRequest, task: Task): Promise<void> {
      const metadata = { [FIRST_MESSAGE_ID]: task.run.metadata[FIRST_MESSAGE_ID] ?? null };
      await calls.withdraw(caller, task, { origin: "a2a", headers, metadata });
    },

    /** `isStreamed`: a client may read the events of the run. */
    async accept(
      request: AgentRequest,
      params: SendMessageRequest,
      { version, isStreamed }: { version: Version; isStreamed: boolean },
    ): Promise<Accepted & { message: Message }> {
      const { message, configuration } = params;
      if (message === undefined || message.messageId === "")
        throw new RequestMalformedError("'message' needs a 'messageId'.");
      if (message.messageId.length > MESSAGE_ID_AT_MOST)
        throw new RequestMalformedError(`'messageId' has more than ${MESSAGE_ID_AT_MOST} characters.`);
      if (message.role !== Role.ROLE_USER)
        throw new RequestMalformedError("The 'role' of the message must be that of the user.");
      historyLengthOf(configuration?.historyLength);
      const storePush = await preparePush(request, version, params);
      const accepted = await (message.taskId === "" ? begin : resume)(request, message, isStreamed);
      await storePush?.(accepted.task);
      request.onAccepted(selectorOf(accepted.task));
      return { ...accepted, message };
    },
  };
};

export type Accepting = ReturnType<typeof createAccepting>;
