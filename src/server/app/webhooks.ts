import { createDispatcher, type Dispatcher, type SendResult } from "../../engine/outbox/dispatcher.ts";
import { createDeliveries, recordDeliveries, type Deliveries } from "../../engine/outbox/deliveries.ts";
import { createPushes, recordPushes, type Pushes, type SentPush } from "../../engine/outbox/pushes.ts";
import { toFinalValues } from "../../engine/queue/final-values.ts";
import { webhookHeaders, webhooksWarning } from "../../graphs/project/webhooks.ts";
import type { RecordEnds, RecordPushes } from "../../engine/queue/sql/ended.ts";
import type { EndsOutbox } from "../../engine/attempt/conclusion.ts";
import { createResolveName, type ResolveName } from "../../protocols/webhooks/request.ts";
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
  push: { pushes: Pushes; onDue(): void; resolveName: ResolveName } | undefined;
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
    send: {
      webhook: createWebhookSender({
        config: webhooks,
        headers: webhookHeaders(webhooks, environment),
        secrets: config.webhookSecrets,
        resolveName,
        ownAddress,
        mountPrefix: foundation.http.mountPrefix,
      }),
      push: sendPush,
    },
    // A worker has no routes.
    own: config.role !== "worker",
    faults,
    logger,
  });
  const outbox = { toFinalValues, onRecorded: () => dispatcher.wake() };
  return {
    ...{ checkWebhook, deliveries, recordEnds: recordDeliveries, recordPushes, outbox, dispatcher },
    push: { pushes: createPushes(database), onDue: () => dispatcher.wake(), resolveName },
  };
};
