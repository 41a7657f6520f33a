import { createHmac } from "node:crypto";
import { OWN_WEBHOOK_HEADER } from "../../http/own-webhooks.ts";
import { serverVersion } from "../../platform/lib/package-versions.ts";
import { SEND_SECONDS_AT_MOST, type SendResult } from "../../engine/outbox/dispatcher.ts";
import type { SentWebhook } from "../../engine/outbox/deliveries.ts";
import type { WebhookConfig } from "../../graphs/project/webhooks.ts";
import { payloadOf } from "./payload.ts";
import { post, type PostResult, type ResolveName } from "./request.ts";
import { ownRouteOf, refusalOf, webhookRefusal } from "./url-rules.ts";

/** Standard Webhooks' prefix of a base64 secret. */
const ENCODED = "whsec_";

const keyOf = (secret: string): Buffer =>
  secret.startsWith(ENCODED)
    ? Buffer.from(secret.slice(ENCODED.length), "base64")
    : Buffer.from(secret, "utf8");

/**
 * Standard Webhooks 1.0: `v1,` and base64 of HMAC-SHA256 over id, seconds and body, joined by dots. One signature per
 * secret lets receivers rotate secrets.
 */
export const signatureOf = (
  secrets: readonly string[],
  { id, timestamp, body }: { id: string; timestamp: number; body: Buffer },
): string | undefined =>
  secrets.length === 0
    ? undefined
    : secrets
        .map((secret) =>
          createHmac("sha256", keyOf(secret)).update(`${id}.${timestamp}.`).update(body).digest("base64"),
        )
        .map((signature) => `v1,${signature}`)
        .join(" ");

export interface WebhookSenderParts {
  config: WebhookConfig;
  /** Sent only to other servers. */
  headers: Readonly<Record<string, string>>;
  /** Each secret adds a signature. */
  secrets: readonly string[];
  resolveName: ResolveName;
  /** Undefined while the server does not listen. */
  ownAddress: () => string | undefined;
  /** A webhook's path may omit this prefix. */
  mountPrefix: string;
  timeoutMs?: number | undefined;
}

const TIMEOUT_MS = SEND_SECONDS_AT_MOST * 1_000;
/** The receiver wants no more requests. */
const GONE = 410;

const failed = (reason: string) => ({ kind: "failed", status: null, reason }) as const;

export const resultOf = (result: PostResult): SendResult => {
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

/**
 * Own routes get no configured headers: callers choose the path, and a key in the headers would give them its rights.
 */
export const createWebhookSender = (parts: WebhookSenderParts) => {
  const { config, headers, secrets, resolveName, ownAddress, mountPrefix, timeoutMs = TIMEOUT_MS } = parts;

  return async (row: SentWebhook, signal: AbortSignal): Promise<SendResult> => {
    // The rules may have changed since the run's creation.
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
    return resultOf(result);
  };
};
