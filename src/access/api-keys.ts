import { createHash, timingSafeEqual } from "node:crypto";
import { forbidden, unauthenticated } from "../lib/errors.ts";

/** What of a request decides about access. */
export interface AccessRequest {
  method: string;
  url: string;
  headers: Record<string, string | string[] | undefined>;
}

/** Throws `unauthenticated` or `forbidden`, or returns. */
export type Authenticate = (request: AccessRequest) => void;

/** Health probes carry no key. */
const OPEN_PATHS = new Set(["/ok", "/ok/"]);

const digest = (key: string): Buffer => createHash("sha256").update(key).digest();

const presentedKey = (headers: AccessRequest["headers"]): string | undefined => {
  const key = headers["x-api-key"];
  if (typeof key === "string" && key !== "") return key;
  const bearer = /^Bearer +(.+)$/i.exec(
    typeof headers.authorization === "string" ? headers.authorization : "",
  );
  return bearer?.[1];
};

/**
 * The check of API keys. Without any key configured everything is open. Keys are kept and compared as SHA-256
 * digests, each in constant time and all of them always, so that neither length nor position tells anything.
 */
export const createAuthenticate = (apiKeys: readonly string[]): Authenticate => {
  if (apiKeys.length === 0) return () => undefined;
  const digests = apiKeys.map(digest);
  return ({ method, url, headers }) => {
    // A preflight can't carry a key; the request that follows it does.
    if (method === "OPTIONS" || OPEN_PATHS.has(url.split("?")[0] ?? "")) return;
    const key = presentedKey(headers);
    if (key === undefined) {
      throw unauthenticated("This server needs an API key: send it as X-Api-Key or Authorization: Bearer.");
    }
    const presented = digest(key);
    let known = false;
    for (const one of digests) known = timingSafeEqual(one, presented) || known;
    if (!known) throw forbidden("The API key is not known to this server.");
  };
};
