import type { Task as A2aTask, TaskPushNotificationConfig } from "@a2a-js/sdk";
import { V03PushNotificationSerializer } from "@a2a-js/sdk/compat/v0_3/server";
import { PushNotificationNotSupportedError, RequestMalformedError } from "@a2a-js/sdk/errors";
import { V1PushNotificationSerializer, type PushNotificationSerializer } from "@a2a-js/sdk/server";
import type { Authorize } from "../../access/authorize.ts";
import { THE_SERVER } from "../../access/caller.ts";
import type { Visibility } from "../../access/visibility.ts";
import type { SendResult } from "../../engine/outbox/dispatcher.ts";
import { PUSHES_PER_TASK, type PushConfig, type Pushes, type SentPush } from "../../engine/outbox/pushes.ts";
import type { WebhookConfig } from "../../graphs/project/webhooks.ts";
import { taskNotFound, ThreadloomError } from "../../platform/domain/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { CallService } from "../calls/service.ts";
import { taskIdOf, type Task } from "../calls/tasks.ts";
import type { ResolveName } from "../webhooks/request.ts";
import { ours, send } from "../webhooks/sender.ts";
import { webhookRefusal } from "../webhooks/url-rules.ts";
import { createReading } from "./reading.ts";
import type { AgentRequest, Version } from "./request.ts";
import { taskEvent } from "./tasks.ts";

export interface PushParts {
  pushes: Pick<Pushes, "list" | "set" | "remove">;
  /** The rules for addresses. */
  config: WebhookConfig;
  resolveName: ResolveName;
  /** A push notification is due at once. */
  onDue(): void;
}

const ID_CHARACTERS = 500;
const TOKEN_CHARACTERS = 4_096;
const SCHEME_CHARACTERS = 100;
const CREDENTIALS_CHARACTERS = 8_192;

const HEADER_TEXT = /^[\t\x20-\x7e\x80-\xff]*$/;
const HEADER_TOKEN = /^[!#$%&'*+.^_`|~\w-]*$/;

/** As the end of "'url' …". A path would name this server, which other agents do not know. */
const pushRefusal = (url: string, config: WebhookConfig): string | undefined =>
  url.startsWith("/") ? "must be an http or https address" : webhookRefusal(url, config);

const textOf = (
  name: string,
  value: unknown,
  { atMost, pattern }: { atMost: number; pattern?: RegExp },
): string => {
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") throw new RequestMalformedError(`'${name}' must be a string.`);
  if (value.length > atMost) throw new RequestMalformedError(`'${name}' has more than ${atMost} characters.`);
  if (pattern?.test(value) === false)
    throw new RequestMalformedError(`'${name}' has characters that a header can't have.`);
  return value;
};

const toA2aConfig = (
  taskId: string,
  { id, url, token, scheme, credentials }: PushConfig,
): TaskPushNotificationConfig => ({
  ...{ tenant: "", id, taskId, url, token },
  authentication: scheme === "" && credentials === "" ? undefined : { scheme, credentials },
});

/** Where tasks are sent when their runs end. `push`: undefined on a server without webhooks. */
export const createPushConfigs = (authorize: Authorize, push: PushParts | undefined) => {
  const supported = (): PushParts => {
    if (push !== undefined) return push;
    throw new PushNotificationNotSupportedError("This server sends no push notifications.");
  };

  /** The package does not check the types of 0.3. */
  const configOf = (given: TaskPushNotificationConfig, version: Version, ownId: string): PushConfig => {
    const { config } = supported();
    const id = textOf("id", given.id, { atMost: ID_CHARACTERS });
    const url = textOf("url", given.url, { atMost: config.maxUrlLength });
    const refusal = pushRefusal(url, config);
    if (refusal !== undefined) throw new RequestMalformedError(`'url' ${refusal}.`);
    const { scheme, credentials } = given.authentication ?? {};
    return {
      ...{ id: id === "" ? ownId : id, url, version },
      token: textOf("token", given.token, { atMost: TOKEN_CHARACTERS, pattern: HEADER_TEXT }),
      scheme: textOf("authentication.scheme", scheme, { atMost: SCHEME_CHARACTERS, pattern: HEADER_TOKEN }),
      credentials: textOf("authentication.credentials", credentials, {
        atMost: CREDENTIALS_CHARACTERS,
        pattern: HEADER_TEXT,
      }),
    };
  };

  const mayUpdate = (
    { caller }: AgentRequest,
    threadId: string | undefined,
  ): Promise<Visibility<"threads">> =>
    authorize(caller, "threads", "update", { thread_id: threadId, metadata: {} });

  const full = (): RequestMalformedError =>
    new RequestMalformedError(`A task has at most ${PUSHES_PER_TASK} configurations of push notifications.`);

  const store = async (
    task: Pick<Task, "threadId" | "firstRunId">,
    config: PushConfig,
    visibility: Visibility<"threads">,
    sentRunId?: string,
  ): Promise<void> => {
    const { pushes, onDue } = supported();
    const stored = await pushes.set(task, config, visibility, sentRunId);
    if (stored === "gone") throw taskNotFound();
    if (stored === "full") throw full();
    if (stored === "due") onDue();
  };

  return {
    async set(
      request: AgentRequest,
      task: Task,
      given: TaskPushNotificationConfig,
      version: Version,
    ): Promise<TaskPushNotificationConfig> {
      const config = configOf(given, version, newId());
      await store(task, config, await mayUpdate(request, task.threadId));
      return toA2aConfig(task.id, config);
    },

    async list({ id, ...task }: Task): Promise<TaskPushNotificationConfig[]> {
      return (await supported().pushes.list(task)).map((config) => toA2aConfig(id, config));
    },

    async remove(request: AgentRequest, task: Task, id: string): Promise<void> {
      const { pushes } = supported();
      await pushes.remove(task, id, await mayUpdate(request, task.threadId));
    },

    /**
     * Refuses the configuration of a message before the message starts a run. The result stores it; the run may have
     * ended by then. `ownId`: of a configuration without an id, so that a repeated message has the same.
     */
    async prepared(
      request: AgentRequest,
      given: TaskPushNotificationConfig,
      about: { version: Version; ownId: string; threadId: string | undefined; task: Task | undefined },
    ): Promise<(accepted: Task) => Promise<void>> {
      const { task } = about;
      const config = configOf(given, about.version, about.ownId);
      const visibility = await mayUpdate(request, about.threadId);
      const before = task === undefined ? [] : await supported().pushes.list(task);
      if (before.length >= PUSHES_PER_TASK && !before.some(({ id }) => id === config.id)) throw full();
      return (accepted) => store(accepted, config, visibility, accepted.run.run_id);
    },
  };
};

export type PushConfigs = ReturnType<typeof createPushConfigs>;

/** A receiver gets a larger task itself. */
const BODY_BYTES_AT_MOST = 4_000_000;

/** Smaller forms of a task, of which the first that fits is sent. */
const formsOf = (task: A2aTask): A2aTask[] => {
  const bare = { ...task, history: [], artifacts: [] };
  const status = task.status && { ...task.status, message: undefined };
  return [task, bare, { ...bare, status }];
};

/** As the package's own sender; of a token and credentials, both are sent. */
const headersOf = ({ token, scheme, credentials }: SentPush): Record<string, string> => ({
  ...(token === "" ? {} : { "x-a2a-notification-token": token }),
  ...(scheme === "" || credentials === "" ? {} : { authorization: `${scheme} ${credentials}` }),
});

/** Sends a task, as it is then, in the dialect of its configuration. */
export const createPushSender = (
  calls: CallService,
  { config, resolveName }: Pick<PushParts, "config" | "resolveName">,
) => {
  const reading = createReading(calls);
  const newest: PushNotificationSerializer = new V1PushNotificationSerializer();
  const serializers = new Map([["0.3", new V03PushNotificationSerializer() as PushNotificationSerializer]]);

  const bodyOf = (task: A2aTask, version: string): { body: Buffer; contentType: string } => {
    const serializer = serializers.get(version) ?? newest;
    for (const form of formsOf(task)) {
      const { body, contentType } = serializer.serialize(taskEvent(form), form);
      if (body.length > BODY_BYTES_AT_MOST) continue;
      const bytes = Buffer.from(body, "utf8");
      if (bytes.length <= BODY_BYTES_AT_MOST) return { body: bytes, contentType };
    }
    throw new Error("A task without contents is too large for a push notification.");
  };

  return async (push: SentPush, signal: AbortSignal): Promise<SendResult> => {
    // The rules may have changed since the configuration was set.
    const refusal = pushRefusal(push.url, config);
    if (refusal !== undefined) return ours(`'url' ${refusal}.`);
    try {
      const id = taskIdOf({ threadId: push.threadId, runId: push.firstRunId });
      const task = await calls.tasks.find(THE_SERVER, id);
      const shown = await reading.snapshot({ caller: THE_SERVER, signal }, task, undefined);
      const { body, contentType } = bodyOf(shown, push.version);
      const headers = { "content-type": contentType, ...headersOf(push) };
      return await send({ url: new URL(push.url), headers, body, config, resolveName, signal });
    } catch (error) {
      if (signal.aborted) return { kind: "stopped" };
      if (error instanceof ThreadloomError) return ours(error.message);
      throw error;
    }
  };
};

export type PushSender = ReturnType<typeof createPushSender>;
