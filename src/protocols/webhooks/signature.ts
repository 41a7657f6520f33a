import { createHmac } from "node:crypto";

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
