import { isEncrypted, openText, type Cipher } from "../../platform/encryption/cipher.ts";

/** Of the row of a run, and of that of its delivery, which is a copy: both have the run's id. */
export const webhookPlace = (runId: string): string => `webhook ${runId}`;

/**
 * The host of an address, whatever its port, as one may listen on thousands; empty for a path of this server. Deliveries to
 * one receiver share the places of a process.
 */
export const receiverOf = (webhook: string): string =>
  webhook.startsWith("/") || !URL.canParse(webhook) ? "" : new URL(webhook).hostname;

/** Both as the row of a delivery has them. */
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
 * A webhook as `runs.webhook` has it. Addresses hold tokens, and a host may be one, too. The statement that ends the run
 * has to know the receiver apart from the address (engine/outbox/record.ts), so where the address is sealed, a digest of the
 * receiver stands behind it; of a path of this server nothing does.
 */
export const storedWebhook = (cipher: Cipher | undefined, webhook: string, runId: string): string => {
  if (cipher === undefined) return webhook;
  const { url, receiver } = encryptedAddress(cipher, webhook, runId);
  return `${url} ${receiver}`;
};

/** SQL for the two parts of what `storedWebhook` returns: the address, and the receiver. No address begins like a sealed one. */
export const webhookParts = (webhook: string): { url: string; receiver: string } => ({
  url: `case when ${webhook} like 'enc1:%' then split_part(${webhook}, ' ', 1) else ${webhook} end`,
  receiver: `case when ${webhook} like 'enc1:%' then split_part(${webhook}, ' ', 2) when ${webhook} like '/%' then ''
      else coalesce(substring(${webhook} from '^https?://(?:[^/?#]*@)?(\\[[^]]*\\]|[^/?#:]+)'), ${webhook}) end`,
});

/** The address that `storedWebhook` was given. */
export const openStoredWebhook = (cipher: Cipher, stored: string, runId: string): string =>
  isEncrypted(stored) ? cipher.decrypt(stored.split(" ", 1)[0] ?? "", webhookPlace(runId)) : stored;

/** What a delivery says of its webhook, its address and why the last try failed, which may name the host. */
interface Told {
  run_id: string;
  url: string;
  last_error: string | null;
}

export const openWebhook = <Row extends Told>(cipher: Cipher | undefined, row: Row): Row => {
  const { run_id: runId, url, last_error: error } = row;
  if (!isEncrypted(url) && (error === null || !isEncrypted(error))) return row;
  return {
    ...row,
    url: openText(cipher, url, webhookPlace(runId)),
    last_error: error === null ? null : openText(cipher, error, webhookPlace(runId)),
  };
};

/** Why a try failed, as it is stored. */
export const storedReason = (cipher: Cipher | undefined, reason: string, runId: string): string =>
  cipher === undefined ? reason : cipher.encrypt(reason, webhookPlace(runId));
