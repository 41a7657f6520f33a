import { createHash } from "node:crypto";

/** The key under which a text is kept apart: the first half of its SHA-256, written as a UUID. */
export const contentHash = (text: string): string => {
  const hex = createHash("sha256").update(text).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
};
