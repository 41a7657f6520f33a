import type { Task as A2aTask } from "@a2a-js/sdk";
import { V1PushNotificationSerializer, type PushNotificationSerializer } from "@a2a-js/sdk/server";
import { V03PushNotificationSerializer } from "@a2a-js/sdk/compat/v0_3/server";
import { THE_SERVER } from "../../access/caller.ts";
import { SEND_SECONDS_AT_MOST, type SendResult } from "../../engine/outbox/dispatcher.ts";
import type { SentPush } from "../../engine/outbox/pushes.ts";
import { ThreadloomError } from "../../platform/domain/errors.ts";
import { serverVersion } from "../../platform/lib/package-versions.ts";
import type { CallService } from "../calls/service.ts";
import { taskIdOf } from "../calls/tasks.ts";
import { refusalOf } from "../webhooks/url-rules.ts";
import { post } from "../webhooks/request.ts";
import { resultOf } from "../webhooks/sender.ts";
import { pushRefusal, type PushParts } from "./push-configs.ts";
import { createReading } from "./reading.ts";
import { taskEvent } from "./updates.ts";

const TIMEOUT_MS = SEND_SECONDS_AT_MOST * 1_000;
/** A receiver gets a larger task itself. */
const BODY_BYTES_AT_MOST = 4_000_000;

const ours = (reason: string) => ({ kind: "failed", status: null, reason, isOurs: true }) as const;

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
      const shown = await reading.firstOfStream({ caller: THE_SERVER, signal }, task);
      const { body, contentType } = bodyOf(shown, push.version);
      const result = await post({
        url: new URL(push.url),
        headers: {
          "user-agent": `threadloom/${serverVersion()}`,
          accept: "*/*",
          "content-type": contentType,
          ...headersOf(push),
        },
        body,
        refusalOf: (address) => refusalOf(address, config),
        resolveName,
        timeoutMs: TIMEOUT_MS,
        signal,
      });
      return resultOf(result);
    } catch (error) {
      if (signal.aborted) return { kind: "stopped" };
      if (error instanceof ThreadloomError) return ours(error.message);
      throw error;
    }
  };
};

export type PushSender = ReturnType<typeof createPushSender>;
