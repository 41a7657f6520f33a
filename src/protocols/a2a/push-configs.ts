import type { TaskPushNotificationConfig } from "@a2a-js/sdk";
import { PushNotificationNotSupportedError, RequestMalformedError } from "@a2a-js/sdk/errors";
import type { Authorize } from "../../access/authorize.ts";
import type { Visibility } from "../../access/visibility.ts";
import { PUSHES_PER_TASK, type PushConfig, type Pushes } from "../../engine/outbox/pushes.ts";
import type { WebhookConfig } from "../../graphs/project/webhooks.ts";
import { taskNotFound } from "../../platform/domain/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { Task } from "../calls/tasks.ts";
import type { ResolveName } from "../webhooks/request.ts";
import { webhookRefusal } from "../webhooks/url-rules.ts";
import type { AgentRequest, Version } from "./request.ts";

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
export const pushRefusal = (url: string, config: WebhookConfig): string | undefined =>
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
    isSupported: push !== undefined,

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
      {
        version,
        ownId,
        threadId,
        task,
      }: { version: Version; ownId: string; threadId: string | undefined; task: Task | undefined },
    ): Promise<(accepted: Task) => Promise<void>> {
      const config = configOf(given, version, ownId);
      const visibility = await mayUpdate(request, threadId);
      const before = task === undefined ? [] : await supported().pushes.list(task);
      if (before.length >= PUSHES_PER_TASK && !before.some(({ id }) => id === config.id)) throw full();
      return (accepted) => store(accepted, config, visibility, accepted.run.run_id);
    },
  };
};

export type PushConfigs = ReturnType<typeof createPushConfigs>;
