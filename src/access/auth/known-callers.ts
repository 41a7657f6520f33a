import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { UserCaller } from "./users.ts";

/** `auth.cache` of langgraph.json. */
export interface CallerCacheOptions {
  /** Lower-case names of the headers that identify a caller. */
  headers: readonly string[];
  ttlSeconds: number;
  maxSize: number;
}

interface KnownCallers {
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
  const known = new LRUCache<string, UserCaller>({
    max: maxSize,
    // The library refuses fractions.
    ttl: Math.ceil(ttlSeconds * 1_000),
    ttlResolution: 0,
    perf: { now },
  });
  return {
    keyOf(headers) {
      const values = names.map((name) => (Object.hasOwn(headers, name) ? headers[name] : undefined) ?? null);
      if (values.every((value) => value === null)) return undefined;
      return createHash("sha256").update(JSON.stringify(values)).digest("base64");
    },

    find: (key) => known.get(key),
    add: (key, caller) => void known.set(key, caller),
    remove: (key) => void known.delete(key),
  };
};
