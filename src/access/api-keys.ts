import { timingSafeEqual } from "node:crypto";
import { keyNeeded, unknownKey } from "../platform/domain/errors.ts";
import { ANONYMOUS, KEY_SCOPES, type Caller } from "./caller.ts";
import type { ApiKeyCache, KeyCaller } from "./keys/api-key-cache.ts";
import { hashOf, idOf, looksLikeKey } from "./keys/key-text.ts";

/** What of a request decides about access. */
export interface AccessRequest {
  method: string;
  url: string;
  headers: Record<string, string | string[] | undefined>;
  /** It has matched a route that is open to everybody: nobody is asked who sends it. */
  isOpen?: boolean;
  /** Whoever was authenticated by the same a while ago has to be asked about anew: it is looked whether that still holds. */
  afresh?: boolean;
  /** Aborted when whoever asks has gone; made only for who waits for something. */
  callerGone?: () => AbortSignal;
}

/**
 * Who makes this request. Throws `unauthenticated` or `forbidden` for nobody whom this server knows. A promise only where
 * somebody has to be asked: keys of the configuration are compared at once, and a tick of each request is spared.
 */
export type Authenticate = (request: AccessRequest) => Caller | Promise<Caller>;

/** Begins a subprotocol that is a key. */
export const KEY_PROTOCOL = "x-api-key.";

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

/** The keys of a server: those of its configuration, and those in the table. */
export interface ApiKeys {
  /** Whether callers have to say who they are. What was open may be controlled a moment later, as the first key is made. */
  readonly areAsked: boolean;
  /** Whose key a request carries; undefined if it carries none, or one that is not known. */
  callerOf(request: AccessRequest): KeyCaller | undefined | Promise<KeyCaller | undefined>;
  /** Whether a caller still has its key; those of the configuration hold as long as the server runs. */
  hold(caller: KeyCaller): boolean;
  authenticate: Authenticate;
}

export interface ApiKeysOptions {
  /** `API_KEYS`. */
  configured: readonly string[];
  /** Left out: there is no table. */
  stored?: Pick<ApiKeyCache, "find" | "holds" | "isInUse">;
  /** Nobody is let in without a key, though there be none: the server can be reached by strangers. */
  neverOpen?: boolean;
}

/**
 * The check of API keys. Without any key everything is open. Keys are kept and compared as SHA-256 digests in constant time;
 * those of the configuration all of them always, so that neither length nor position tells anything.
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
    // Whatever else is sent, such as the token of a user, waits for no reading of the table.
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

/**
 * The check of a project's own `Auth`, beside keys that there may be: a known key is the operator's own access, and everybody else
 * is looked for by `authenticateUser`.
 */
export const createAuthenticateUsers =
  (keys: Pick<ApiKeys, "callerOf">, authenticateUser: Authenticate): Authenticate =>
  (request) => {
    if (request.isOpen === true) return ANONYMOUS;
    const keyed = keys.callerOf(request);
    if (keyed instanceof Promise) return keyed.then((caller) => caller ?? authenticateUser(request));
    return keyed ?? authenticateUser(request);
  };

/** The check of the keys of a configuration alone. */
export const createAuthenticate = (apiKeys: readonly string[]): ((request: AccessRequest) => Caller) =>
  createApiKeys({ configured: apiKeys }).authenticate as (request: AccessRequest) => Caller;
