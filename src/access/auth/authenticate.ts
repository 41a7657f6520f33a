import type { AccessRequest } from "../api-keys.ts";
import { malformed, notAuthenticated, ThreadloomError } from "../../platform/domain/errors.ts";
import { markedOfGraph } from "../../platform/lib/contents.ts";
import { boundedText } from "../../platform/lib/log-fields.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { AuthHandlers } from "./handlers.ts";
import { createKnownCallers, type CallerCacheOptions } from "./known-callers.ts";
import { isLossOfAccess, refusalIn, UnexplainedRefusal } from "./refusals.ts";
import { HANDLER_SECONDS, inTime } from "./time-limits.ts";
import { NoIdentityError, userOf, type UserCaller } from "./users.ts";

interface UserAuthenticationOptions {
  handlers: Pick<AuthHandlers, "authenticate">;
  /** Undefined: the handler is called for each request. */
  cache?: CallerCacheOptions | undefined;
  /** Accepts `x-auth-scheme: langsmith` as Studio's user without calling the handler. */
  letsStudioIn: boolean;
  logger: Logger;
  handlerSeconds?: number;
}

/** The hosted service's identity for Studio, which the SDK's `isStudioUser` recognizes. */
const STUDIO_USER = userOf({ identity: "langgraph-studio-user", kind: "StudioUser" });

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
