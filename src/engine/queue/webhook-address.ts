import { isEncrypted, openText, type Cipher } from "../../platform/encryption/cipher.ts";

/** The encryption context of `runs.webhook`, and of its copy in the delivery. */
export const webhookPlace = (runId: string): string => `webhook ${runId}`;

/**
 * Without the port, because a receiver may listen on many; empty for a path of this server. Limits of
 * concurrent deliveries count by receiver.
 */
export const receiverOf = (webhook: string): string =>
  webhook.startsWith("/") || !URL.canParse(webhook) ? "" : new URL(webhook).hostname;

export const encryptedAddress = (
  cipher: Cipher,
  webhook: string,
  runId: string,
): { url: string; receiver: string } => {
  const receiver = receiverOf(webhook);
  return {
    url: cipher.encrypt(webhook, webhookPlace(runId)),
    receiver: receiver === "" ? "" : cipher.digest(`receiver ${receiver}`),
  };
};

/**
 * Encrypted, because addresses hold tokens. A digest of the receiver follows, because the statement that ends
 * the run needs it (engine/outbox/record.ts); empty for a path of this server.
 */
export const storedWebhook = (cipher: Cipher | undefined, webhook: string, runId: string): string => {
  if (cipher === undefined) return webhook;
  const { url, receiver } = encryptedAddress(cipher, webhook, runId);
  return `${url} ${receiver}`;
};

/** A plain address never begins with `enc1:`. */
export const webhookParts = (webhook: string): { url: string; receiver: string } => ({
  url: `case when ${webhook} like 'enc1:%' then split_part(${webhook}, ' ', 1) else ${webhook} end`,
  receiver: `case when ${webhook} like 'enc1:%' then split_part(${webhook}, ' ', 2) when ${webhook} like '/%' then ''
      else coalesce(substring(${webhook} from '^https?://(?:[^/?#]*@)?(\\[[^]]*\\]|[^/?#:]+)'), ${webhook}) end`,
});

export const openStoredWebhook = (cipher: Cipher, stored: string, runId: string): string =>
  isEncrypted(stored) ? cipher.decrypt(stored.split(" ", 1)[0] ?? "", webhookPlace(runId)) : stored;

/** `last_error` may name the host. */
interface WebhookFields {
  run_id: string;
  url: string;
  last_error: string | null;
}

export const openWebhook = <Row extends WebhookFields>(cipher: Cipher | undefined, row: Row): Row => {
  const { run_id: runId, url, last_error: error } = row;
  if (!isEncrypted(url) && (error === null || !isEncrypted(error))) return row;
  return {
    ...row,
    url: openText(cipher, url, webhookPlace(runId)),
    last_error: error === null ? null : openText(cipher, error, webhookPlace(runId)),
  };
};

export const storedReason = (cipher: Cipher | undefined, reason: string, runId: string): string =>
  cipher === undefined ? reason : cipher.encrypt(reason, webhookPlace(runId));
