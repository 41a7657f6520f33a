import { createHmac } from "node:crypto";
import { OWN_WEBHOOK_HEADER } from "../../http/sites.ts";
import { serverVersion } from "../../platform/lib/package-versions.ts";
import { SEND_SECONDS_AT_MOST, type SendResult } from "../../engine/outbox/dispatcher.ts";
import type { SentWebhook } from "../../engine/outbox/deliveries.ts";
import type { WebhookConfig } from "../../graphs/project/webhooks.ts";
import { post, type Post, type ResolveName } from "./request.ts";
import { ownRouteOf, refusalOf, webhookRefusal } from "./url-rules.ts";
import { timestamp } from "../../platform/lib/timestamps.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { fromFinalValues } from "../../engine/queue/final-values.ts";
import { shownKwargs } from "../../api/runs/record.ts";

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

/** A failure of this server, which counts against no receiver. */
export const ours = (reason: string): SendResult => ({ ...failed(reason), isOurs: true });

export interface Sending extends Pick<Post, "url" | "headers" | "body" | "resolveName" | "signal"> {
  /** The rules for addresses; undefined for the server's own. */
  config: WebhookConfig | undefined;
  timeoutMs?: number | undefined;
}

/** Sends a webhook or a push notification. */
export const send = async ({
  headers,
  config,
  timeoutMs = TIMEOUT_MS,
  ...rest
}: Sending): Promise<SendResult> => {
  const result = await post({
    ...rest,
    headers: { "user-agent": `threadloom/${serverVersion()}`, accept: "*/*", ...headers },
    refusalOf: config && ((address) => refusalOf(address, config)),
    timeoutMs,
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

/**
 * Own routes get no configured headers: callers choose the path, and a key in the headers would give them its rights.
 */
export const createWebhookSender = (parts: WebhookSenderParts) => {
  const { config, headers, secrets, resolveName, ownAddress, mountPrefix, timeoutMs } = parts;

  return async (row: SentWebhook, signal: AbortSignal): Promise<SendResult> => {
    // The rules may have changed since the run's creation.
    const refusal = webhookRefusal(row.url, config);
    if (refusal !== undefined) return ours(`'webhook' ${refusal}.`);
    const path = ownRouteOf(row.url);
    const base = path === undefined ? undefined : ownAddress();
    if (path !== undefined && base === undefined) return ours("This server does not listen.");
    const prefix = path?.startsWith(`${mountPrefix}/`) === true ? "" : mountPrefix;
    const url = new URL(path === undefined ? row.url : `${base}${prefix}${path}`);
    const sentAt = new Date();
    const body = payloadOf(row, { sentAt, allowedFields: config.allowedFields });
    const timestamp = Math.floor(sentAt.getTime() / 1_000);
    const signature = signatureOf(secrets, { id: row.run_id, timestamp, body });
    return await send({
      url,
      headers: {
        ...(path === undefined ? headers : { [OWN_WEBHOOK_HEADER]: "true" }),
        "content-type": "application/json",
        "webhook-id": row.run_id,
        "webhook-timestamp": String(timestamp),
        ...(signature === undefined ? {} : { "webhook-signature": signature }),
      },
      body,
      config: path === undefined ? config : undefined,
      resolveName,
      timeoutMs,
      signal,
    });
  };
};

/** `rollback` is the hosted service's word for a run without a record. */
export const shownStatus = (status: string): string => (status === "rolled-back" ? "rollback" : status);

/** engine/outbox/deliveries.ts does not even read much longer inputs. */
const KWARGS_CHARACTERS_AT_MOST = 4_000_000;

const kwargsOf = ({ kwargs: asked, ...row }: SentWebhook): { kwargs: JsonObject; omitted: string[] } => {
  const kwargs = asked === null ? undefined : (shownKwargs({ ...row, kwargs: asked }) as JsonObject);
  if (kwargs !== undefined && JSON.stringify(kwargs).length <= KWARGS_CHARACTERS_AT_MOST)
    return { kwargs, omitted: [] };
  return { kwargs: { webhook: row.url }, omitted: ["kwargs"] };
};

/**
 * Fields are named as in the hosted service (docs/decisions/037-webhooks.md). `omitted` names fields that were too
 * large.
 */
export const payloadOf = (
  row: SentWebhook,
  { sentAt, allowedFields }: { sentAt: Date; allowedFields: readonly string[] | undefined },
): Buffer => {
  const { kwargs, omitted } = kwargsOf(row);
  const { values, interrupts } = fromFinalValues(row.final_values);
  if (row.values_omitted) omitted.push("values");
  if (interrupts === "null") omitted.push("interrupts");
  const fields: Record<string, unknown> = {
    run_id: row.run_id,
    thread_id: row.thread_id,
    assistant_id: row.assistant_id,
    created_at: timestamp(row.run_created_at),
    updated_at: timestamp(row.run_ended_at),
    metadata: row.metadata,
    status: shownStatus(row.run_status),
    kwargs,
    multitask_strategy: row.multitask_strategy,
    run_started_at: row.run_started_at && timestamp(row.run_started_at),
    run_ended_at: timestamp(row.run_ended_at),
    webhook_sent_at: timestamp(sentAt),
    ...(row.error === null ? {} : { error: row.error }),
    ...(omitted.length === 0 ? {} : { omitted }),
  };
  const isWanted = (field: string): boolean => allowedFields?.includes(field) ?? true;
  const texts = Object.entries(fields)
    .filter(([field]) => isWanted(field))
    .map(([field, value]) => `${JSON.stringify(field)}:${JSON.stringify(value)}`);
  // The stored text, which may be megabytes, is not parsed.
  if (isWanted("values")) texts.push(`"values":${values ?? "null"}`);
  if (interrupts !== undefined && isWanted("interrupts")) texts.push(`"interrupts":${interrupts}`);
  return Buffer.from(`{${texts.join(",")}}`, "utf8");
};
