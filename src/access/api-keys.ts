import { timingSafeEqual } from "node:crypto";
import { keyNeeded, unknownKey } from "../platform/domain/errors.ts";
import { ANONYMOUS, KEY_SCOPES, type Caller } from "./caller.ts";
import type { ApiKeyCache, KeyCaller } from "./keys/api-key-cache.ts";
import { hashOf, idOf, looksLikeKey } from "./keys/key-text.ts";

export interface AccessRequest {
  method: string;
  url: string;
  headers: Record<string, string | string[] | undefined>;
  /** The matched route needs no authentication. */
  isOpen?: boolean;
  /** Bypasses the cache of authenticated callers. */
  afresh?: boolean;
  /** Aborts when the client disconnects; called only where a handler waits. */
  callerGone?: () => AbortSignal;
}

/** Throws `unauthenticated` or `forbidden`. Compares configured keys synchronously, which saves a tick per request. */
export type Authenticate = (request: AccessRequest) => Caller | Promise<Caller>;

export const KEY_PROTOCOL = "x-api-key.";

/**
 * Browsers cannot set headers of a WebSocket, so the key comes as a subprotocol (percent-encoded after `x-api-key.`) or
 * as `api_key` in the query. Other requests may not use the query, because proxies log addresses.
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

export interface ApiKeys {
  /** Whether callers need a key. Changes when the first key is created. */
  readonly areAsked: boolean;
  /** Undefined if the request has no key or an unknown one. */
  callerOf(request: AccessRequest): KeyCaller | undefined | Promise<KeyCaller | undefined>;
  /** Configured keys stay valid as long as the server runs. */
  hold(caller: KeyCaller): boolean;
  authenticate: Authenticate;
}

interface ApiKeysOptions {
  /** `API_KEYS`. */
  configured: readonly string[];
  /** Undefined: there is no table of keys. */
  stored?: Pick<ApiKeyCache, "find" | "holds" | "isInUse">;
  /** Requires a key even if none exists, because strangers can reach the server. */
  neverOpen?: boolean;
}

/**
 * Compares all configured keys by SHA-256 digest in constant time, so timing reveals neither length nor position.
 * Without any key the server is open.
 */
export const createApiKeys = ({ configured, stored, neverOpen = false }: ApiKeysOptions): ApiKeys => {
  const known = configured.map((key) => {
    const hash = hashOf(key);
    const caller: KeyCaller = Object.freeze({ kind: "key", id: idOf(hash), scopes: KEY_SCOPES });
    return { hash, caller };
  });
  const ids = new Set(known.map(({ caller }) => caller.id));

  const findKey = (key: string): KeyCaller | undefined | Promise<KeyCaller | undefined> => {
    const presented = hashOf(key);
    let found: KeyCaller | undefined;
    for (const { hash, caller } of known) found = timingSafeEqual(hash, presented) ? caller : found;
    // Other credentials, such as a user's token, must not wait for the table.
    return found ?? (looksLikeKey(key) ? stored?.find(presented) : undefined);
  };
  const admit = (caller: KeyCaller | undefined): KeyCaller => {
    if (caller === undefined) throw unknownKey();
    return caller;
  };
  const areAsked = (): boolean => neverOpen || known.length > 0 || stored?.isInUse === true;
  return {
    get areAsked() {
      return areAsked();
    },
    callerOf(request) {
      const key = presentedKey(request);
      return key === undefined ? undefined : findKey(key);
    },
    hold: (caller) => ids.has(caller.id) || stored?.holds(caller) === true,
    authenticate(request) {
      if (!areAsked() || request.isOpen === true) return ANONYMOUS;
      const key = presentedKey(request);
      if (key === undefined) {
        throw keyNeeded();
      }
      const caller = findKey(key);
      return caller instanceof Promise ? caller.then(admit) : admit(caller);
    },
  };
};

/** A known API key belongs to the operator. All other requests go to `authenticateUser`, the project's `Auth`. */
export const createAuthenticateUsers =
  (keys: Pick<ApiKeys, "callerOf">, authenticateUser: Authenticate): Authenticate =>
  (request) => {
    if (request.isOpen === true) return ANONYMOUS;
    const keyed = keys.callerOf(request);
    if (keyed instanceof Promise) return keyed.then((caller) => caller ?? authenticateUser(request));
    return keyed ?? authenticateUser(request);
  };
