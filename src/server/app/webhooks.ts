import { createDispatcher, type Dispatcher } from "../../engine/outbox/dispatcher.ts";
import { createDeliveries, type Deliveries } from "../../engine/outbox/deliveries.ts";
import { createPushes, recordPushes, type Pushes, type SentPush } from "../../engine/outbox/pushes.ts";
import type { SendResult } from "../../engine/outbox/tries.ts";
import { toFinalValues } from "../../engine/queue/final-values.ts";
import { recordDeliveries } from "../../engine/outbox/record.ts";
import { webhookHeaders, webhooksWarning } from "../../graphs/project/webhooks.ts";
import type { RecordEnds, RecordPushes } from "../../engine/queue/sql/ended.ts";
import type { EndsOutbox } from "../../engine/attempt/conclusion.ts";
import { createResolveName, type ResolveName } from "../../protocols/webhooks/names.ts";
import { createWebhookSender } from "../../protocols/webhooks/sender.ts";
import { createWebhookCheck } from "../../protocols/webhooks/url-rules.ts";
import type { Foundation } from "./foundation.ts";

export interface Webhooks {
  /** Throws `invalid` for a disallowed webhook. */
  checkWebhook(webhook: string | undefined): void;
  deliveries: Deliveries;
  /** Undefined if webhooks are disabled, like the next ones. */
  recordEnds: RecordEnds | undefined;
  recordPushes: RecordPushes | undefined;
  outbox: EndsOutbox | undefined;
  dispatcher: Dispatcher | undefined;
  push: { pushes: Pushes; dispatcher: Dispatcher; resolveName: ResolveName } | undefined;
}

const DISABLED = {
  ...{ recordEnds: undefined, recordPushes: undefined },
  ...{ outbox: undefined, dispatcher: undefined, push: undefined },
};

export interface WebhookSurroundings {
  /** Undefined until the server listens. */
  ownAddress: () => string | undefined;
  sendPush: (push: SentPush, signal: AbortSignal) => Promise<SendResult>;
}

export const createWebhooks = (
  foundation: Foundation,
  { ownAddress, sendPush }: WebhookSurroundings,
): Webhooks => {
  const { config, database, environment, faults, logger, webhooks } = foundation;
  const deliveries = createDeliveries(database);
  const checkWebhook = createWebhookCheck(webhooks);
  if (webhooks.disabled) return { checkWebhook, deliveries, ...DISABLED };
  const warning = webhooksWarning(webhooks);
  if (warning !== undefined) logger.warn(warning);
  const resolveName = createResolveName(webhooks.allowsLoopback || webhooks.allowsPrivate);
  const dispatcher = createDispatcher({
    deliveries,
    send: createWebhookSender({
      config: webhooks,
      headers: webhookHeaders(webhooks, environment),
      secrets: config.webhookSecrets,
      resolveName,
      ownAddress,
      mountPrefix: foundation.http.mountPrefix,
    }),
    // A worker has no routes.
    own: config.role !== "worker",
    faults,
    logger,
  });
  const pushes = createPushes(database);
  const pushDispatcher = createDispatcher({
    words: { name: "push notification", id: "push_id" },
    ...{ deliveries: pushes, send: sendPush, own: true, faults, logger },
  });
  const outbox = {
    toFinalValues,
    onRecorded: () => dispatcher.wake(),
    onPushesDue: () => pushDispatcher.wake(),
  };
  return {
    ...{ checkWebhook, deliveries, recordEnds: recordDeliveries, recordPushes, outbox, dispatcher },
    push: { pushes, dispatcher: pushDispatcher, resolveName },
  };
};
