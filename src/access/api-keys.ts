import { createHash, timingSafeEqual } from "node:crypto";
import { forbidden, unauthenticated } from "../domain/errors.ts";
import { ANONYMOUS, KEY_SCOPES, type Caller } from "./caller.ts";

/** What of a request decides about access. */
export interface AccessRequest {
  method: string;
  url: string;
  headers: Record<string, string | string[] | undefined>;
}

/**
 * Who makes this request. Throws `unauthenticated` or `forbidden` for nobody whom this server knows. A promise only where
 * somebody has to be asked: keys of the configuration are compared at once, and a tick of each request is spared.
 */
export type Authenticate = (request: AccessRequest) => Caller | Promise<Caller>;

/** Health probes carry no key, and a page can't send one with what it loads by an address: scripts and styles of `/ui`. */
const OPEN_PATHS = /^\/ok\/?$|^\/ui\/[^/]+\/[^/]+$/;

const isOpen = (method: string, url: string): boolean =>
  (method === "GET" || method === "HEAD") && OPEN_PATHS.test(url.split("?")[0] ?? "");

/** Hexadecimal digits of a key's digest that name the key: enough to tell an operator's keys apart. */
const ID_DIGITS = 12;

/** Begins a subprotocol that is a key. */
export const KEY_PROTOCOL = "x-api-key.";

const digest = (key: string): Buffer => createHash("sha256").update(key).digest();

/**
 * Browsers can give a WebSocket no headers: the key comes as a subprotocol (`x-api-key.` and the key, percent-encoded where it
 * holds what a subprotocol can't), or as `api_key` in the query. Of a WebSocket alone: an address ends up in the logs of
 * proxies, and this server's own log has none.
 */
const keyOfWebSocket = ({ url, headers }: AccessRequest): string | undefined => {
  if (typeof headers.upgrade !== "string" || headers.upgrade.toLowerCase() !== "websocket") return undefined;
  const protocols = String(headers["sec-websocket-protocol"] ?? "").split(",");
  const named = protocols.map((name) => name.trim()).find((name) => name.startsWith(KEY_PROTOCOL));
  const query = url.slice(url.indexOf("?") + 1);
  if (named === undefined) return new URLSearchParams(query).get("api_key") ?? undefined;
  try {
    return decodeURIComponent(named.slice(KEY_PROTOCOL.length));
  } catch {
    return named.slice(KEY_PROTOCOL.length);
  }
};

const presentedKey = (request: AccessRequest): string | undefined => {
  const { headers } = request;
  const key = headers["x-api-key"];
  if (typeof key === "string" && key !== "") return key;
  const bearer = /^Bearer +(.+)$/i.exec(
    typeof headers.authorization === "string" ? headers.authorization : "",
  );
  return bearer?.[1] ?? keyOfWebSocket(request);
};

/**
 * The check of API keys. Without any key configured everything is open. Keys are kept and compared as SHA-256
 * digests, each in constant time and all of them always, so that neither length nor position tells anything.
 */
export const createAuthenticate = (apiKeys: readonly string[]): ((request: AccessRequest) => Caller) => {
  if (apiKeys.length === 0) return () => ANONYMOUS;
  const known = apiKeys.map((key) => {
    const keyDigest = digest(key);
    const caller: Caller = Object.freeze({
      kind: "key",
      id: keyDigest.toString("hex").slice(0, ID_DIGITS),
      scopes: KEY_SCOPES,
    });
    return { keyDigest, caller };
  });
  return (request) => {
    const { method, url } = request;
    // A preflight can't carry a key; the request that follows it does.
    if (method === "OPTIONS" || isOpen(method, url)) return ANONYMOUS;
    const key = presentedKey(request);
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
