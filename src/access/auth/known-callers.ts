import { createHash } from "node:crypto";
import type { UserCaller } from "./users.ts";

/** `auth.cache` of langgraph.json. */
export interface CallerCacheOptions {
  /** Lower-case names of the headers that identify a caller. */
  headers: readonly string[];
  ttlSeconds: number;
  maxSize: number;
}

/** Recently authenticated callers, by a digest of their headers. */
export interface KnownCallers {
  /** Undefined if the request has none of the headers. */
  keyOf(headers: Readonly<Record<string, string | string[] | undefined>>): string | undefined;
  find(key: string): UserCaller | undefined;
  add(key: string, caller: UserCaller): void;
  remove(key: string): void;
}

export const createKnownCallers = (
  { headers: names, ttlSeconds, maxSize }: CallerCacheOptions,
  now: () => number = () => performance.now(),
): KnownCallers => {
  /** Least recently used first. */
  const known = new Map<string, { caller: UserCaller; until: number }>();
  return {
    keyOf(headers) {
      const values = names.map((name) => (Object.hasOwn(headers, name) ? headers[name] : undefined) ?? null);
      if (values.every((value) => value === null)) return undefined;
      return createHash("sha256").update(JSON.stringify(values)).digest("base64");
    },

    find(key) {
      const found = known.get(key);
      if (found === undefined) return undefined;
      known.delete(key);
      if (found.until <= now()) return undefined;
      known.set(key, found);
      return found.caller;
    },

    add(key, caller) {
      known.delete(key);
      known.set(key, { caller, until: now() + ttlSeconds * 1_000 });
      const [oldest] = known.keys();
      if (known.size > maxSize && oldest !== undefined) known.delete(oldest);
    },

    remove(key) {
      known.delete(key);
    },
  };
};
