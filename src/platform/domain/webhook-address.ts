/**
 * Limits of deliveries count by receiver. Without the port, because a receiver may listen on many; empty for a path of
 * this server.
 */
export const receiverOf = (webhook: string): string =>
  webhook.startsWith("/") || !URL.canParse(webhook) ? "" : new URL(webhook).hostname;

export const receiverDigest = ({ digest }: { digest: (text: string) => string }, webhook: string): string => {
  const receiver = receiverOf(webhook);
  return receiver === "" ? "" : digest(`receiver ${receiver}`);
};

/** As a statement with `webhookParts` stores it. */
export const storedReceiver = (
  encryption: { isOn: boolean; digest: (text: string) => string },
  webhook: string,
): string => (encryption.isOn ? receiverDigest(encryption, webhook) : receiverOf(webhook));

/** A plain address never begins with `enc1:`. */
export const webhookParts = (webhook: string): { url: string; receiver: string } => ({
  url: `case when ${webhook} like 'enc1:%' then split_part(${webhook}, ' ', 1) else ${webhook} end`,
  receiver: `case when ${webhook} like 'enc1:%' then split_part(${webhook}, ' ', 2) when ${webhook} like '/%' then ''
      else coalesce(substring(${webhook} from '^https?://(?:[^/?#]*@)?(\\[[^]]*\\]|[^/?#:]+)'), ${webhook}) end`,
});
