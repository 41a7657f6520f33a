import { OWN_WEBHOOK_HEADER } from "../../http/own-webhooks.ts";
import { serverVersion } from "../../platform/lib/package-versions.ts";
import { SEND_SECONDS_AT_MOST } from "../../engine/outbox/dispatcher.ts";
import type { SentDelivery } from "../../engine/outbox/deliveries.ts";
import type { SendResult } from "../../engine/outbox/tries.ts";
import type { WebhookConfig } from "../../graphs/project/webhooks.ts";
import { refusalOf } from "./addresses.ts";
import type { ResolveName } from "./names.ts";
import { payloadOf } from "./payload.ts";
import { post } from "./request.ts";
import { signatureOf } from "./signature.ts";
import { ownRouteOf, webhookRefusal } from "./url-rules.ts";

export interface WebhookSenderParts {
  config: WebhookConfig;
  /** Of every request to somebody else, their templates filled in. */
  headers: Readonly<Record<string, string>>;
  /** Each signs; none: nothing is signed. */
  secrets: readonly string[];
  resolveName: ResolveName;
  /** Where this server listens, like `http://127.0.0.1:8123`; undefined while it does not. */
  ownAddress: () => string | undefined;
  /** Below which its routes are; a path may name it, or leave it out. */
  mountPrefix: string;
  timeoutMs?: number | undefined;
}

const TIMEOUT_MS = SEND_SECONDS_AT_MOST * 1_000;
/** HTTP says: what was here is gone, and nobody should ask again. */
const GONE = 410;

const failed = (reason: string) => ({ kind: "failed", status: null, reason }) as const;

/**
 * Sends deliveries as signed requests. A path of this server is asked as anybody would ask it, without the configured
 * headers: callers choose the path, and with a key among the headers they would act as who has that key.
 */
export const createWebhookSender = (parts: WebhookSenderParts) => {
  const { config, headers, secrets, resolveName, ownAddress, mountPrefix, timeoutMs = TIMEOUT_MS } = parts;

  return async (row: SentDelivery, signal: AbortSignal): Promise<SendResult> => {
    // As when the run was created: the rules may be others by now.
    const refusal = webhookRefusal(row.url, config);
    if (refusal !== undefined) return { ...failed(`'webhook' ${refusal}.`), isOurs: true };
    const path = ownRouteOf(row.url);
    const base = path === undefined ? undefined : ownAddress();
    if (path !== undefined && base === undefined)
      return { ...failed("This server does not listen."), isOurs: true };
    const prefix = path?.startsWith(`${mountPrefix}/`) === true ? "" : mountPrefix;
    const url = new URL(path === undefined ? row.url : `${base}${prefix}${path}`);
    const sentAt = new Date();
    const body = payloadOf(row, { sentAt, allowedFields: config.allowedFields });
    const timestamp = Math.floor(sentAt.getTime() / 1_000);
    const signature = signatureOf(secrets, { id: row.run_id, timestamp, body });
    const result = await post({
      url,
      headers: {
        "user-agent": `threadloom/${serverVersion()}`,
        accept: "*/*",
        ...(path === undefined ? headers : { [OWN_WEBHOOK_HEADER]: "true" }),
        "content-type": "application/json",
        "webhook-id": row.run_id,
        "webhook-timestamp": String(timestamp),
        ...(signature === undefined ? {} : { "webhook-signature": signature }),
      },
      body,
      refusalOf: path === undefined ? (address) => refusalOf(address, config) : undefined,
      resolveName,
      timeoutMs,
      signal,
    });
    if (result.kind === "aborted") return { kind: "stopped" };
    if (result.kind === "unanswered") return failed(result.reason);
    const { status, retryAfter } = result;
    if (status >= 200 && status < 300) return { kind: "delivered", status };
    const reason =
      status >= 300 && status < 400
        ? `The receiver answered ${status}; redirects are not followed.`
        : `The receiver answered ${status}.`;
    return { kind: "failed", status, reason, retryAfter, forGood: status === GONE };
  };
};
