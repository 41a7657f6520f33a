import {
  AgentCard,
  type CancelTaskRequest,
  type DeleteTaskPushNotificationConfigRequest,
  type GetTaskPushNotificationConfigRequest,
  type GetTaskRequest,
  type ListTaskPushNotificationConfigsRequest,
  type ListTasksRequest,
  type Message,
  type SendMessageRequest,
  type SubscribeToTaskRequest,
  type TaskPushNotificationConfig,
  type Task as A2aTask,
} from "@a2a-js/sdk";
import { TaskNotCancelableError, UnsupportedOperationError } from "@a2a-js/sdk/errors";
import type { A2ARequestHandler } from "@a2a-js/sdk/server";
import { assistantIdOf } from "../../platform/domain/assistant-ids.ts";
import { taskNotFound } from "../../platform/domain/errors.ts";
import type { CallService } from "../calls/service.ts";
import { createAccepting } from "./accepting.ts";
import { createCards, type CardParts } from "./card.ts";
import { createPushConfigs, type PushParts } from "./pushes.ts";
import { createReading } from "./reading.ts";
import { createTaskRepository } from "./repository.ts";
import {
  contextIdOf,
  historyLengthOf,
  lengthOf,
  NEVER,
  stateOf,
  timeOf,
  type AgentRequest,
  type Version,
} from "./request.ts";
import { selectorOf, taskEvent, TERMINAL, toA2aTask } from "./tasks.ts";

const PAGE_SIZE = 50;
const PAGE_SIZE_AT_MOST = 100;
/** A page with histories and artifacts ends early. */
const PAGE_CHARACTERS_AT_MOST = 4_000_000;

/** A task whose state holds no message yet. */
const withMessage = (task: A2aTask, message: Message, historyLength: number | undefined): A2aTask => ({
  ...task,
  history: historyLength === 0 ? [] : [{ ...message, contextId: task.contextId, taskId: task.id }],
});

/** Assistants as agents. Each request gets its handler, which the package's transports call. */
export const createAgents = (
  calls: CallService,
  cardParts: Omit<CardParts, "pushes">,
  push: PushParts | undefined,
) => {
  const repository = createTaskRepository(calls.authorize, calls.database);
  const cards = createCards(calls.assistants, { ...cardParts, pushes: push !== undefined });
  const pushConfigs = createPushConfigs(calls.authorize, push);
  const accepting = createAccepting(calls, repository, pushConfigs);
  const reading = createReading(calls);

  const handlerOf = (request: AgentRequest, version: Version): A2ARequestHandler => {
    return {
      // The package asks only whether there are streams.
      getAgentCard: async () => AgentCard.fromJSON({ capabilities: { streaming: true } }),
      getAuthenticatedExtendedAgentCard: () => cards.of(request),

      async sendMessage(params: SendMessageRequest): Promise<A2aTask> {
        const returnsAtOnce = params.configuration?.returnImmediately === true;
        const accepted = await accepting.accept(request, params, {
          ...{ version, isStreamed: returnsAtOnce },
        });
        const { task, message } = accepted;
        const historyLength = params.configuration?.historyLength;
        if (returnsAtOnce) return withMessage(toA2aTask(task, undefined), message, historyLength);
        return await reading.end(request, accepted, historyLength);
      },

      async *sendMessageStream(params: SendMessageRequest) {
        const accepted = await accepting.accept(request, params, { version, isStreamed: true });
        const { task, message } = accepted;
        const { historyLength } = params.configuration ?? {};
        if (TERMINAL.has(task.state) || task.state === "input-required") {
          yield taskEvent(await reading.snapshot(request, task, historyLength));
          return;
        }
        yield taskEvent(withMessage(toA2aTask(task, undefined), message, historyLength));
        yield* reading.updates(request, accepted);
      },

      async getTask({ id, historyLength }: GetTaskRequest) {
        return await reading.snapshot(
          request,
          await accepting.find(request, id),
          historyLengthOf(historyLength),
        );
      },

      async listTasks(params: ListTasksRequest) {
        const pageSize = lengthOf("pageSize", params.pageSize, 1, PAGE_SIZE_AT_MOST) ?? PAGE_SIZE;
        const historyLength = historyLengthOf(params.historyLength) ?? 0;
        // A missing assistant is no empty list.
        await calls.assistants.get(request.caller, request.assistantId);
        if (NEVER.has(params.status)) return { tasks: [], nextPageToken: "", pageSize: 0, totalSize: 0 };
        const page = await repository.list(
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
        let characters = 0;
        for (const { task } of page.tasks) {
          const one = await reading.snapshot(request, task, historyLength, params.includeArtifacts === true);
          shown.push(one);
          if (one.history.length + one.artifacts.length > 0) characters += JSON.stringify(one).length;
          if (characters > PAGE_CHARACTERS_AT_MOST) break;
        }
        const isLast = page.isLast && shown.length === page.tasks.length;
        const nextPageToken = isLast ? "" : (page.tasks[shown.length - 1]?.pageToken ?? "");
        return { tasks: shown, nextPageToken, pageSize: shown.length, totalSize: page.total };
      },

      async cancelTask({ id }: CancelTaskRequest) {
        const task = await accepting.find(request, id);
        if (TERMINAL.has(task.state)) throw new TaskNotCancelableError("The task has ended.");
        const asked = { action: "interrupt", reason: "requested" } as const;
        if (task.state === "input-required") await accepting.giveUp(request, task);
        else
          await calls.cancellation.cancel(request.caller, selectorOf(task), asked, {
            signal: request.signal,
          });
        const ended = await accepting.find(request, id);
        if (ended.state !== "cancelled")
          throw new TaskNotCancelableError("The task ended before it could be cancelled.");
        return await reading.snapshot(request, ended, undefined);
      },

      async *resubscribe({ id }: SubscribeToTaskRequest) {
        const task = await accepting.find(request, id);
        if (TERMINAL.has(task.state))
          throw new UnsupportedOperationError("The task has ended; get it instead.");
        request.onAccepted(selectorOf(task));
        yield taskEvent(await reading.snapshot(request, task, undefined));
        if (task.state !== "input-required") yield* reading.updates(request, { task, created: undefined });
      },

      async createTaskPushNotificationConfig(params: TaskPushNotificationConfig) {
        return await pushConfigs.set(request, await accepting.find(request, params.taskId), params, version);
      },

      /** In 0.3 the id is optional. */
      async getTaskPushNotificationConfig({ taskId, id }: GetTaskPushNotificationConfigRequest) {
        const configs = await pushConfigs.list(await accepting.find(request, taskId));
        const found = configs.find((config) => id === "" || config.id === id);
        if (found === undefined) throw taskNotFound();
        return found;
      },

      async listTaskPushNotificationConfigs({ taskId }: ListTaskPushNotificationConfigsRequest) {
        const configs = await pushConfigs.list(await accepting.find(request, taskId));
        return { configs, nextPageToken: "" };
      },

      async deleteTaskPushNotificationConfig({ taskId, id }: DeleteTaskPushNotificationConfigRequest) {
        await pushConfigs.remove(request, await accepting.find(request, taskId), id);
      },
    };
  };

  return { handlerOf };
};
