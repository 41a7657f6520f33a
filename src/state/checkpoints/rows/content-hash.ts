import { createHash } from "node:crypto";
import type { Encryption } from "../../../platform/database/database.ts";

/**
 * Half of the SHA-256 as a UUID. With `encryption`, a keyed digest, so that the hash can't confirm a guess of the text.
 */
export const contentHash = (text: string, encryption?: Encryption): string => {
  const hex = encryption?.digest(text) ?? createHash("sha256").update(text).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
};
