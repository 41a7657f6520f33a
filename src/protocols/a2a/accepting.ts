import { Role, type Message, type Part, type SendMessageRequest } from "@a2a-js/sdk";
import {
  ContentTypeNotSupportedError,
  RequestMalformedError,
  UnsupportedOperationError,
} from "@a2a-js/sdk/errors";
import type { CreatedRun } from "../../api/runs/joining/results.ts";
import { assistantIdOf } from "../../platform/domain/assistant-ids.ts";
import { taskNotFound, ThreadChangedError } from "../../platform/domain/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../platform/lib/json.ts";
import type { Interrupt } from "../calls/outcome.ts";
import type { CallService } from "../calls/service.ts";
import { ORIGIN, type Call } from "../calls/start.ts";
import type { Task } from "../calls/tasks.ts";
import type { Context, TaskRepository } from "./repository.ts";
import type { PushConfigs } from "./pushes.ts";
import { contextIdOf, historyLengthOf, type Accepted, type AgentRequest, type Version } from "./request.ts";
import { FIRST_MESSAGE_ID, MESSAGE_ID, selectorOf, TERMINAL } from "./tasks.ts";

interface Content {
  /** Undefined without a text part. */
  text: string | undefined;
  /** All data parts, merged. Undefined without one. */
  data: JsonObject | undefined;
}

const dataOf = (value: unknown): JsonObject => {
  if (isJsonObject(value)) return value;
  throw new RequestMalformedError("A data part must hold an object.");
};

const contentOf = (parts: readonly Part[]): Content => {
  const texts: string[] = [];
  let data: JsonObject | undefined;
  for (const { content } of parts) {
    if (content?.$case === "text") texts.push(String(content.value));
    else if (content?.$case === "data") data = { ...data, ...dataOf(content.value) };
    else throw new ContentTypeNotSupportedError("Only text parts and data parts are taken, no files.");
  }
  if (texts.length === 0 && data === undefined)
    throw new RequestMalformedError("The message has no part with text or data.");
  return { text: texts.length === 0 ? undefined : texts.join("\n"), data };
};

/** A graph without schemas takes any input. */
const takesMessages = (inputSchema: JsonObject): boolean => {
  const { properties } = inputSchema;
  return (
    !isJsonObject(properties) || Object.keys(properties).length === 0 || Object.hasOwn(properties, "messages")
  );
};

/** The graph's input: data parts are merged into it, and text becomes a message of the user. */
const inputOf = async (
  { parts, messageId }: Message,
  inputSchema: () => Promise<JsonObject>,
): Promise<JsonObject> => {
  const { text, data = {} } = contentOf(parts);
  if (text === undefined) return data;
  if (!takesMessages(await inputSchema()))
    throw new RequestMalformedError(
      "The input of this assistant's graph has no 'messages' for a text part; send a data part.",
    );
  const before = Array.isArray(data.messages) ? data.messages : [];
  return { ...data, messages: [...before, { role: "user", content: text, id: messageId }] };
};

/** Answers by the ids of interrupts: `{<id>: value}` or `{resume: [{id, value}]}`. Undefined for another object. */
const answersById = (data: JsonObject, interrupts: readonly Interrupt[]): JsonObject | undefined => {
  const { resume } = data;
  const pairs: [unknown, JsonValue | undefined][] =
    Array.isArray(resume) && resume.length > 0 && resume.every(isJsonObject)
      ? resume.map(({ id, value }) => [id, value])
      : Object.entries(data);
  const answers = new Map<string, JsonValue>();
  for (const [id, value] of pairs) {
    if (!interrupts.some((interrupt) => interrupt.id === id)) return undefined;
    answers.set(id as string, value ?? null);
  }
  return answers.size === 0 ? undefined : Object.fromEntries(answers);
};

/** The `resume` of a command that answers the interrupts of a task. */
const resumeOf = ({ parts }: Message, interrupts: readonly Interrupt[]): JsonValue => {
  const { text, data } = contentOf(parts);
  const byId = data && answersById(data, interrupts);
  if (byId !== undefined) return byId;
  if (interrupts.length > 1) {
    const ids = interrupts.map(({ id }) => `'${id}'`).join(", ");
    throw new RequestMalformedError(
      `The task waits for several answers: send a data part with the answers by the ids of the interrupts (${ids}).`,
    );
  }
  return data ?? text ?? null;
};

const MESSAGE_ID_AT_MOST = 500;
/** Of messages to one context at once, each try stores at least one. */
const TRIES_AT_MOST = 100;

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

  const start = async (
    { caller, assistantId, headers }: AgentRequest,
    { messageId }: Message,
    isStreamed: boolean,
    run: Pick<Call, "threadId" | "taskRunId" | "turnsSeen" | "body"> & {
      firstMessageId?: JsonValue | undefined;
    },
  ): Promise<Accepted> => {
    const { firstMessageId, body, ...rest } = run;
    const created = await calls.start({
      ...{ ...rest, caller, origin: "a2a", assistantId, headers, streamed: isStreamed },
      body: {
        ...body,
        metadata: { [MESSAGE_ID]: messageId, [FIRST_MESSAGE_ID]: firstMessageId ?? messageId },
        stream_mode: isStreamed ? ["messages-tuple"] : [],
        // The log keeps the events for clients that subscribe later.
        stream_resumable: isStreamed,
      },
    });
    return { task: taskOfCreated(created, rest.taskRunId ?? created.row.run_id), created };
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
    const command = { resume: resumeOf(message, task.interrupts), update: undefined, goto: undefined };
    return await start(request, message, isStreamed, {
      ...{ threadId: task.threadId, taskRunId: task.firstRunId, turnsSeen: task.turns, body: { command } },
      firstMessageId: task.run.metadata[FIRST_MESSAGE_ID],
    });
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
        return await start(request, message, isStreamed, {
          ...{ threadId: contextId ?? newId(), turnsSeen: context?.turns },
          body: { input: await inputOf(message, schema) },
        });
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
