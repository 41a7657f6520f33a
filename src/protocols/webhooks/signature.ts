import { createHmac } from "node:crypto";

/** Begins a secret whose rest is base64, as Standard Webhooks has them. */
const ENCODED = "whsec_";

/** The key of a secret: its base64 if it is one of Standard Webhooks, else the text itself. */
const keyOf = (secret: string): Buffer =>
  secret.startsWith(ENCODED)
    ? Buffer.from(secret.slice(ENCODED.length), "base64")
    : Buffer.from(secret, "utf8");

/**
 * Signs as Standard Webhooks 1.0 says: `v1,` and the base64 of HMAC-SHA256 over id, time in seconds and body, joined by
 * dots; one signature for each secret, so that receivers can change theirs one after the other. Undefined without secrets.
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
