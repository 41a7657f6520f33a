import { createHash, randomUUID } from "node:crypto";

/**
 * Ordered by time, so index writes stay local. The library's `v7` draws entropy for each id, which is 4 % of a busy
 * server's profile.
 */
export const newId = (): string => {
  const random = randomUUID();
  const time = Date.now().toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(15)}`;
};

/** The same id for the same time and name. It is ordered by time, too. */
export const idFrom = (time: Date, name: string): string => {
  const ms = time.getTime().toString(16).padStart(12, "0");
  const hash = createHash("sha256").update(`${ms} ${name}`).digest("hex");
  return `${ms.slice(0, 8)}-${ms.slice(8)}-7${hash.slice(0, 3)}-a${hash.slice(3, 6)}-${hash.slice(6, 18)}`;
};

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Any version: clients send them, and PostgreSQL takes them. */
export const isUuid = (text: string): boolean => UUID.test(text);
