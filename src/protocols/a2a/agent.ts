import {
  AgentCard,
  Role,
  TaskState,
  type CancelTaskRequest,
  type GetTaskRequest,
  type ListTasksRequest,
  type Message,
  type SendMessageRequest,
  type StreamResponse,
  type SubscribeToTaskRequest,
  type Task as A2aTask,
} from "@a2a-js/sdk";
import {
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotCancelableError,
  UnsupportedOperationError,
} from "@a2a-js/sdk/errors";
import type { A2ARequestHandler } from "@a2a-js/sdk/server";
import type { CreatedRun } from "../../api/runs/joining/results.ts";
import { assistantIdOf } from "../../platform/domain/assistant-ids.ts";
import { taskNotFound } from "../../platform/domain/errors.ts";
import { isUuid, newId } from "../../platform/lib/ids.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { eventsOf } from "../calls/events.ts";
import type { Outcome } from "../calls/outcome.ts";
import type { CallService } from "../calls/service.ts";
import { ORIGIN } from "../calls/start.ts";
import type { Task } from "../calls/tasks.ts";
import { createCards, type CardParts } from "./card.ts";
import { inputOf, resumeOf } from "./messages.ts";
import { createTaskRepository } from "./repository.ts";
import { StreamLostError, type AgentRequest } from "./request.ts";
import { FIRST_MESSAGE_ID, MESSAGE_ID, STATES, toA2aTask } from "./tasks.ts";
import { createArtifactUpdates, statusEvent, taskEvent } from "./updates.ts";

const MESSAGE_ID_AT_MOST = 500;
const PAGE_SIZE = 50;
const PAGE_SIZE_AT_MOST = 100;
/** No task of this server gets these states. */
const NEVER = new Set([TaskState.TASK_STATE_REJECTED, TaskState.TASK_STATE_AUTH_REQUIRED]);
const TERMINAL: ReadonlySet<Task["state"]> = new Set(["completed", "failed", "cancelled"]);

const selectorOf = ({ threadId, run }: Task) => ({ threadId, runId: run.run_id });

const contextIdOf = (contextId: string): string | undefined => {
  if (contextId === "") return undefined;
  if (isUuid(contextId)) return contextId.toLowerCase();
  throw new RequestMalformedError("'contextId' must be a UUID: it is the id of a thread.");
};

const lengthOf = (
  name: string,
  value: number | undefined,
  least: number,
  most: number,
): number | undefined => {
  if (value === undefined || (Number.isInteger(value) && value >= least && value <= most)) return value;
  throw new RequestMalformedError(`'${name}' must be an integer from ${least} to ${most}.`);
};
const historyLengthOf = (value: number | undefined): number | undefined =>
  lengthOf("historyLength", value, 0, 2_147_483_647);

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

/** A task whose run is to be awaited. `created`: undefined if the message was known already. */
interface Accepted {
  task: Task;
  created: CreatedRun | undefined;
}

/** Assistants as agents. Each request gets its handler, which the package's transports call. */
export const createAgents = (calls: CallService, cardParts: CardParts) => {
  const repository = createTaskRepository(calls.authorize, calls.database);
  const cards = createCards(calls.assistants, cardParts);

  const find = async ({ caller, assistantId }: AgentRequest, id: unknown): Promise<Task> => {
    if (typeof id !== "string") throw new RequestMalformedError("The id of a task must be a string.");
    const task = await calls.tasks.find(caller, id);
    const isOfAgent = task.run.assistant_id === assistantIdOf(assistantId);
    if (!isOfAgent || task.run.metadata[ORIGIN] !== "a2a") throw taskNotFound();
    return task;
  };

  const taskOfCreated = ({ row }: CreatedRun, firstRunId: string): Task => ({
    ...{ id: `${row.thread_id}:${firstRunId}`, threadId: row.thread_id, firstRunId },
    ...{ state: row.status === "pending" ? "submitted" : "working", run: row, interrupts: [], turns: 0 },
  });

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

  const begin = async (request: AgentRequest, message: Message, isStreamed: boolean): Promise<Accepted> => {
    const { caller, assistantId } = request;
    const contextId = contextIdOf(message.contextId);
    const newest = contextId && (await repository.newestOf(caller, contextId));
    if (newest && newest.metadata[MESSAGE_ID] === message.messageId && newest.metadata[ORIGIN] === "a2a")
      return { task: await find(request, newest.taskId), created: undefined };
    const input = await inputOf(
      message,
      async () => (await calls.assistants.graph.schemas(caller, assistantId)).input_schema,
    );
    const created = await calls.start({
      ...{ caller, origin: "a2a", assistantId, threadId: contextId ?? newId() },
      body: {
        input,
        metadata: { [MESSAGE_ID]: message.messageId, [FIRST_MESSAGE_ID]: message.messageId },
        ...streamingOf(isStreamed),
      },
      ...{ streamed: isStreamed, headers: request.headers },
    });
    return { task: taskOfCreated(created, created.row.run_id), created };
  };

  /** `isStreamed`: somebody may read the events of the run. */
  const accept = async (
    request: AgentRequest,
    { message, configuration }: SendMessageRequest,
    isStreamed: boolean,
  ): Promise<Accepted & { message: Message }> => {
    if (message === undefined || message.messageId === "")
      throw new RequestMalformedError("'message' needs a 'messageId'.");
    if (message.messageId.length > MESSAGE_ID_AT_MOST)
      throw new RequestMalformedError(`'messageId' has more than ${MESSAGE_ID_AT_MOST} characters.`);
    if (message.role !== Role.ROLE_USER)
      throw new RequestMalformedError("The 'role' of the message must be that of the user.");
    if (configuration?.taskPushNotificationConfig !== undefined)
      throw new PushNotificationNotSupportedError("This server sends no push notifications.");
    historyLengthOf(configuration?.historyLength);
    const accepted = await (message.taskId === "" ? begin : resume)(request, message, isStreamed);
    request.onAccepted(selectorOf(accepted.task));
    return { ...accepted, message };
  };

  const outcomeOf = (
    { caller, signal, budget }: AgentRequest,
    { task, created }: Accepted,
  ): Promise<Outcome> =>
    created === undefined
      ? calls.outcomes.of(caller, selectorOf(task), { signal, budget })
      : calls.outcomes.ofCreated(created, { signal, budget });

  /** A task as it is now. */
  const snapshot = async (
    request: AgentRequest,
    task: Task,
    historyLength: number | undefined,
    withArtifacts = true,
  ): Promise<A2aTask> => {
    const { caller, budget } = request;
    if (historyLength === 0 && !withArtifacts) return toA2aTask(task, undefined);
    if (task.state === "submitted" || task.state === "working") {
      if (historyLength === 0) return toA2aTask(task, undefined);
      const state = await calls.threads.states.read(caller, task.threadId, { select: ["values"], budget });
      const { values } = JSON.parse(state) as { values: JsonObject | null };
      return toA2aTask(task, values ?? {}, { historyLength, withArtifacts: false });
    }
    const outcome = await outcomeOf(request, { task, created: undefined });
    return toA2aTask(task, valuesOf(outcome), { historyLength, withArtifacts });
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
          : calls.joining.readCreated(created);
      const close = (): void => reader.close();
      signal.addEventListener("abort", close);
      if (signal.aborted) close();
      try {
        const events = eventsOf(reader, calls.threads.slicer);
        let isWorking = false;
        let next = await events.next();
        for (; next.done !== true; next = await events.next()) {
          if (!isWorking) yield statusEvent({ ...task, state: "working" });
          isWorking = true;
          const update = artifacts.of(next.value);
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

  const handlerOf = (request: AgentRequest): A2ARequestHandler => {
    const refusePush = async ({ taskId }: { taskId: string }): Promise<never> => {
      await find(request, taskId);
      throw new PushNotificationNotSupportedError("This server sends no push notifications.");
    };
    return {
      // The package asks only whether there are streams.
      getAgentCard: async () => AgentCard.fromJSON({ capabilities: { streaming: true } }),
      getAuthenticatedExtendedAgentCard: () => cards.of(request),

      async sendMessage(params: SendMessageRequest): Promise<A2aTask> {
        const returnsAtOnce = params.configuration?.returnImmediately === true;
        const accepted = await accept(request, params, returnsAtOnce);
        const { task, message } = accepted;
        const historyLength = params.configuration?.historyLength;
        if (returnsAtOnce) return withMessage(toA2aTask(task, undefined), message, historyLength);
        const outcome = await outcomeOf(request, accepted);
        return toA2aTask(endedAs(task, outcome, new Date()), valuesOf(outcome), { historyLength });
      },

      async *sendMessageStream(params: SendMessageRequest) {
        const accepted = await accept(request, params, true);
        const { task, message } = accepted;
        const { historyLength } = params.configuration ?? {};
        if (TERMINAL.has(task.state) || task.state === "input-required") {
          yield taskEvent(await snapshot(request, task, historyLength));
          return;
        }
        yield taskEvent(withMessage(toA2aTask(task, undefined), message, historyLength));
        yield* updates(request, accepted);
      },

      async getTask({ id, historyLength }: GetTaskRequest) {
        return await snapshot(request, await find(request, id), historyLengthOf(historyLength));
      },

      async listTasks(params: ListTasksRequest) {
        const pageSize = lengthOf("pageSize", params.pageSize, 1, PAGE_SIZE_AT_MOST) ?? PAGE_SIZE;
        const historyLength = historyLengthOf(params.historyLength) ?? 0;
        if (NEVER.has(params.status)) return { tasks: [], nextPageToken: "", pageSize: 0, totalSize: 0 };
        const { tasks, nextPageToken, total } = await repository.list(
          request.caller,
          {
            assistantId: assistantIdOf(request.assistantId),
            threadId: contextIdOf(params.contextId),
            state: stateOf(params.status),
            since: timeOf(params.statusTimestampAfter),
            limit: pageSize,
            pageToken: params.pageToken === "" ? undefined : params.pageToken,
          },
          request.signal,
        );
        const shown: A2aTask[] = [];
        for (const task of tasks)
          shown.push(await snapshot(request, task, historyLength, params.includeArtifacts === true));
        return { tasks: shown, nextPageToken, pageSize: shown.length, totalSize: total };
      },

      async cancelTask({ id }: CancelTaskRequest) {
        const task = await find(request, id);
        if (task.state !== "submitted" && task.state !== "working")
          throw new TaskNotCancelableError(
            task.state === "input-required"
              ? "The task waits for input, so nothing runs that could be cancelled."
              : "The task has ended.",
          );
        const asked = { action: "interrupt", reason: "requested" } as const;
        await calls.cancellation.cancel(request.caller, selectorOf(task), asked, { signal: request.signal });
        const ended = await find(request, id);
        if (ended.state !== "cancelled")
          throw new TaskNotCancelableError("The task ended before it could be cancelled.");
        return await snapshot(request, ended, undefined);
      },

      async *resubscribe({ id }: SubscribeToTaskRequest) {
        const task = await find(request, id);
        if (TERMINAL.has(task.state))
          throw new UnsupportedOperationError("The task has ended; get it instead.");
        request.onAccepted(selectorOf(task));
        yield taskEvent(await snapshot(request, task, undefined));
        if (task.state !== "input-required") yield* updates(request, { task, created: undefined });
      },

      createTaskPushNotificationConfig: refusePush,
      getTaskPushNotificationConfig: refusePush,
      listTaskPushNotificationConfigs: refusePush,
      deleteTaskPushNotificationConfig: refusePush,
    };
  };

  return { handlerOf };
};

export type Agents = ReturnType<typeof createAgents>;

/** The log keeps the events of such a run for clients that subscribe later. */
const streamingOf = (isStreamed: boolean) => ({
  stream_mode: isStreamed ? ["messages-tuple"] : [],
  stream_resumable: isStreamed,
});

/** A task whose state holds no message yet. */
const withMessage = (task: A2aTask, message: Message, historyLength: number | undefined): A2aTask => ({
  ...task,
  history: historyLength === 0 ? [] : [{ ...message, contextId: task.contextId, taskId: task.id }],
});

const stateOf = (asked: TaskState): Task["state"] | undefined => {
  if (asked === TaskState.TASK_STATE_UNSPECIFIED) return undefined;
  const [state] = Object.entries(STATES).find(([, value]) => value === asked) ?? [];
  if (state === undefined) throw new RequestMalformedError("'status' is no state of a task.");
  return state as Task["state"];
};

const timeOf = (text: string | undefined): Date | undefined => {
  if (text === undefined || text === "") return undefined;
  const time = new Date(text);
  if (!Number.isNaN(time.getTime())) return time;
  throw new RequestMalformedError("'statusTimestampAfter' must be an ISO 8601 time.");
};
