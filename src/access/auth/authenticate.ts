import type { AccessRequest } from "../api-keys.ts";
import { malformed, notAuthenticated, ThreadloomError } from "../../platform/domain/errors.ts";
import { markedOfGraph } from "../../platform/lib/contents.ts";
import { boundedText } from "../../platform/lib/log-fields.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { type AuthHandlers, HANDLER_SECONDS, inTime } from "./decisions.ts";
import { isLossOfAccess, refusalIn, UnexplainedRefusal } from "./refusals.ts";
import type { UserCaller } from "../caller.ts";
import { storableObject } from "../../platform/domain/json-schemas.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";

/** Bounded because each run of the user carries it. */
const CHARACTERS_AT_MOST = 100_000;

/** The handler's answer names no user. */
export class NoIdentityError extends Error {
  override readonly name = "NoIdentityError";
}

/** Converted to JSON, because it is stored with runs and sent to graph processes. */
const jsonOf = (user: unknown): JsonObject => {
  let text: string;
  try {
    text = JSON.stringify(user);
  } catch (cause) {
    throw new NoIdentityError("the returned user is no JSON", { cause });
  }
  if (text.length > CHARACTERS_AT_MOST) {
    throw new NoIdentityError(`the returned user has more than ${CHARACTERS_AT_MOST} characters of JSON`);
  }
  const storable = storableObject.safeParse(JSON.parse(text));
  if (storable.success) return storable.data;
  throw new NoIdentityError(`the returned user ${storable.error.issues[0]?.message ?? ""}`);
};

/** Accepts an identity, or an object with an `identity`. Throws `NoIdentityError` with a sentence for the log. */
export const userOf = (answer: unknown): UserCaller => {
  const given: unknown = typeof answer === "string" ? { identity: answer } : answer;
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new NoIdentityError(
      "authentication answered no identity: return a text, or an object with 'identity'",
    );
  }
  const said = given as Record<string, unknown>;
  const { identity, permissions = [], display_name: name, is_authenticated: isAuthenticated } = said;
  if (typeof identity !== "string" || identity === "") {
    throw new NoIdentityError("the 'identity' of the returned user must be a text that is not empty");
  }
  const isList = Array.isArray(permissions) && permissions.every((one) => typeof one === "string");
  if (permissions !== null && !isList) {
    throw new NoIdentityError("the 'permissions' of the returned user must be a list of texts");
  }
  const user = jsonOf({
    ...said,
    identity,
    permissions: permissions ?? [],
    display_name: name ?? identity,
    is_authenticated: isAuthenticated ?? true,
  });
  return Object.freeze({
    kind: "user",
    identity,
    permissions: Object.freeze([...((permissions ?? []) as string[])]),
    user,
  });
};

/** `auth.cache` of langgraph.json. */
export interface CallerCacheOptions {
  /** Lower-case names of the headers that identify a caller. */
  headers: readonly string[];
  ttlSeconds: number;
  maxSize: number;
}

export const createKnownCallers = (
  { headers: names, ttlSeconds, maxSize }: CallerCacheOptions,
  now: () => number = () => performance.now(),
) => {
  const known = new LRUCache<string, UserCaller>({
    max: maxSize,
    // The library refuses fractions.
    ttl: Math.ceil(ttlSeconds * 1_000),
    ttlResolution: 0,
    perf: { now },
  });
  return {
    /** Undefined if the request has none of the headers. */
    keyOf(headers: AccessRequest["headers"]): string | undefined {
      const values = names.map((name) => (Object.hasOwn(headers, name) ? headers[name] : undefined) ?? null);
      if (values.every((value) => value === null)) return undefined;
      return createHash("sha256").update(JSON.stringify(values)).digest("base64");
    },
    find: (key: string): UserCaller | undefined => known.get(key),
    add: (key: string, caller: UserCaller): void => void known.set(key, caller),
    remove: (key: string): void => void known.delete(key),
  };
};

/** The hosted service's identity for Studio, which the SDK's `isStudioUser` recognizes. */
const STUDIO_USER = userOf({ identity: "langgraph-studio-user", kind: "StudioUser" });

interface UserAuthenticationOptions {
  handlers: Pick<AuthHandlers, "authenticate">;
  /** Undefined: the handler is called for each request. */
  cache?: CallerCacheOptions | undefined;
  /** Accepts `x-auth-scheme: langsmith` as Studio's user without calling the handler. */
  letsStudioIn: boolean;
  logger: Logger;
  handlerSeconds?: number;
}

/** A web `Request` without a body. Its signal is lazy, because an eager one raised the cost from 6 to 34 µs. */
const webRequest = (
  { method, url, headers }: AccessRequest,
  signal: (() => AbortSignal) | undefined,
): Request => {
  try {
    const given = new Headers();
    for (const [name, value] of Object.entries(headers)) {
      for (const one of Array.isArray(value) ? value : [value ?? ""]) given.append(name, one);
    }
    const address = url.startsWith("/") ? `http://${given.get("host") ?? "localhost"}${url}` : url;
    const request = new Request(address, { method, headers: given });
    return signal === undefined ? request : Object.defineProperty(request, "signal", { get: signal });
  } catch (cause) {
    throw malformed("The request can't be read: its method, its address or its Host is not valid.", cause);
  }
};

/** Authenticates with the project's handler. Rejects with the handler's refusal, `unauthenticated`, or a fault. */
export const createUserAuthentication = (
  options: UserAuthenticationOptions,
): ((request: AccessRequest) => UserCaller | Promise<UserCaller>) => {
  const { handlers, letsStudioIn, logger, handlerSeconds = HANDLER_SECONDS } = options;
  const known = options.cache === undefined ? undefined : createKnownCallers(options.cache);
  const logThrown = createThrottledLog(
    logger,
    "'authenticate' threw an error that is no HTTPException; the request was answered 401",
  );
  const ignore = createThrottledLog(logger, "'authenticate' returned no user; the request was answered 401");

  const ask = async (request: AccessRequest): Promise<UserCaller> => {
    const { callerGone } = request;
    let gone: AbortSignal | undefined;
    const signal = callerGone && ((): AbortSignal => (gone ??= callerGone()));
    const asked = webRequest(request, signal);
    try {
      return userOf(await inTime(handlers.authenticate(asked), handlerSeconds * 1_000, signal));
    } catch (error) {
      if (gone?.aborted) throw error;
      if (error instanceof NoIdentityError) {
        ignore(error, request);
        throw notAuthenticated();
      }
      if (error instanceof ThreadloomError && error.kind === "unavailable") throw error;
      const refusal = refusalIn(error);
      if (refusal !== undefined) throw refusal;
      logThrown(markedOfGraph(error), request);
      throw new UnexplainedRefusal(error);
    }
  };

  return (request) => {
    if (letsStudioIn && request.headers["x-auth-scheme"] === "langsmith") return STUDIO_USER;
    const key = known?.keyOf(request.headers);
    if (known === undefined || key === undefined) return ask(request);
    const found = request.afresh === true ? undefined : known.find(key);
    if (found !== undefined) return found;
    return ask(request).then(
      (caller) => {
        known.add(key, caller);
        return caller;
      },
      (error: unknown) => {
        // Keep the entry on faults: it stays valid for its time while the identity provider is away.
        if (isLossOfAccess(error)) known.remove(key);
        throw error;
      },
    );
  };
};

/** Unauthenticated clients can make the handler throw at any rate. */
const LOG_EVERY_MS = 10_000;
const PATH_AT_MOST = 500;

const createThrottledLog = (logger: Logger, message: string) => {
  let loggedAt = Number.NEGATIVE_INFINITY;
  let suppressed = 0;
  return (error: unknown, { method, url }: AccessRequest): void => {
    const now = performance.now();
    if (now - loggedAt < LOG_EVERY_MS) {
      suppressed += 1;
      return;
    }
    loggedAt = now;
    // Without the query, which may hold a token.
    const path = boundedText(url.split("?")[0] ?? "", PATH_AT_MOST);
    logger.warn(
      { err: error, method, path, ...(suppressed === 0 ? {} : { others_since: suppressed }) },
      message,
    );
    suppressed = 0;
  };
};
