import { createDispatcher, type Dispatcher } from "../../engine/outbox/dispatcher.ts";
import { createDeliveries, type Deliveries } from "../../engine/outbox/deliveries.ts";
import { toFinalValues } from "../../engine/queue/final-values.ts";
import { recordDeliveries } from "../../engine/outbox/record.ts";
import { webhookHeaders, webhooksWarning } from "../../graphs/project/webhooks.ts";
import type { RecordEnds } from "../../engine/queue/sql/ended.ts";
import type { EndsOutbox } from "../../engine/attempt/conclusion.ts";
import { createResolveName } from "../../protocols/webhooks/names.ts";
import { createWebhookSender } from "../../protocols/webhooks/sender.ts";
import { createWebhookCheck } from "../../protocols/webhooks/url-rules.ts";
import type { Foundation } from "./foundation.ts";

export interface Webhooks {
  /** Throws `invalid` for a disallowed webhook. */
  checkWebhook(webhook: string | undefined): void;
  deliveries: Deliveries;
  /** Undefined if webhooks are disabled, like the next two. */
  recordEnds: RecordEnds | undefined;
  outbox: EndsOutbox | undefined;
  dispatcher: Dispatcher | undefined;
}

/** `ownAddress`: undefined until the server listens. */
export const createWebhooks = (foundation: Foundation, ownAddress: () => string | undefined): Webhooks => {
  const { config, database, environment, faults, logger, webhooks } = foundation;
  const deliveries = createDeliveries(database);
  const checkWebhook = createWebhookCheck(webhooks);
  if (webhooks.disabled)
    return { checkWebhook, deliveries, recordEnds: undefined, outbox: undefined, dispatcher: undefined };
  const warning = webhooksWarning(webhooks);
  if (warning !== undefined) logger.warn(warning);
  const dispatcher = createDispatcher({
    deliveries,
    send: createWebhookSender({
      config: webhooks,
      headers: webhookHeaders(webhooks, environment),
      secrets: config.webhookSecrets,
      resolveName: createResolveName(webhooks.allowsLoopback || webhooks.allowsPrivate),
      ownAddress,
      mountPrefix: foundation.http.mountPrefix,
    }),
    // A worker has no routes.
    own: config.role !== "worker",
    faults,
    logger,
  });
  const outbox = { toFinalValues, onRecorded: () => dispatcher.wake() };
  return { checkWebhook, deliveries, recordEnds: recordDeliveries, outbox, dispatcher };
};
