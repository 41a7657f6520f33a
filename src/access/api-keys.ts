import { createHash, timingSafeEqual } from "node:crypto";
import { forbidden, unauthenticated } from "../domain/errors.ts";
import { ANONYMOUS, type Caller } from "./caller.ts";

/** What of a request decides about access. */
export interface AccessRequest {
  method: string;
  url: string;
  headers: Record<string, string | string[] | undefined>;
}

/** Who makes this request. Throws `unauthenticated` or `forbidden` for nobody whom this server knows. */
export type Authenticate = (request: AccessRequest) => Caller;

/** Health probes carry no key. */
const OPEN_PATHS = new Set(["/ok", "/ok/"]);

/** Hexadecimal digits of a key's digest that name the key: enough to tell an operator's keys apart. */
const ID_DIGITS = 12;

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
  if (apiKeys.length === 0) return () => ANONYMOUS;
  const known = apiKeys.map((key) => {
    const keyDigest = digest(key);
    const caller: Caller = Object.freeze({ kind: "key", id: keyDigest.toString("hex").slice(0, ID_DIGITS) });
    return { keyDigest, caller };
  });
  return ({ method, url, headers }) => {
    // A preflight can't carry a key; the request that follows it does.
    if (method === "OPTIONS" || OPEN_PATHS.has(url.split("?")[0] ?? "")) return ANONYMOUS;
    const key = presentedKey(headers);
    if (key === undefined) {
      throw unauthenticated("This server needs an API key: send it as X-Api-Key or Authorization: Bearer.");
    }
    const presented = digest(key);
    let found: Caller | undefined;
    for (const { keyDigest, caller } of known) found = timingSafeEqual(keyDigest, presented) ? caller : found;
    if (found === undefined) throw forbidden("The API key is not known to this server.");
    return found;
  };
};
