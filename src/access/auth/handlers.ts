import { EVENTS, type AuthEvent } from "../values.ts";

/** What a handler of authorization is given: see the SDK's `AuthCallbackParameter`. */
export interface HandlerArgument {
  event: AuthEvent;
  resource: string;
  action: string;
  value: unknown;
  permissions: string[];
  user: Record<string, unknown>;
}

/** The project's `Auth`: its functions, whichever copy of the SDK has made it. */
export interface AuthHandlers {
  authenticate(request: Request): unknown;
  /** The one handler that decides about the event: the most specific. Undefined: nobody decides, so it is allowed. */
  handlerOf(event: AuthEvent): ((argument: HandlerArgument) => unknown) | undefined;
  /** Events that no handler covers. */
  readonly uncovered: readonly AuthEvent[];
}

/** Where an `Auth` of the SDK keeps its functions. */
const CACHE = "~handlerCache";

type Handler = (argument: HandlerArgument) => unknown;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

/** The most specific first. */
const namesFor = (event: AuthEvent): string[] => {
  const [resource = "", action = ""] = event.split(":");
  return [event, resource, `*:${action}`, "*"];
};

/** What may be registered; anything else is a handler that would never be asked. */
const KNOWN = new Set(EVENTS.flatMap(namesFor));

/**
 * Reads what the project exports as its `Auth`. Recognised by its functions and not by its class, which another copy of the SDK
 * has made. Answers a sentence if it is none, which begins with what it is.
 */
export const readHandlers = (exported: unknown): AuthHandlers | string => {
  if (!isObject(exported) || !isObject(exported[CACHE])) {
    return "is no Auth: export what `new Auth()` of @langchain/langgraph-sdk/auth makes";
  }
  const { authenticate, callbacks = {} } = exported[CACHE] as {
    authenticate?: unknown;
    callbacks?: unknown;
  };
  if (typeof authenticate !== "function") {
    return "has no authenticate handler, without which nobody could be let in: call .authenticate(handler)";
  }
  const registered = new Map<string, Handler>();
  for (const [name, handler] of Object.entries(isObject(callbacks) ? callbacks : {})) {
    if (typeof handler !== "function") return `has a handler of '${name}' that is no function`;
    if (!KNOWN.has(name)) return `has a handler of '${name}', which is no event`;
    registered.set(name, handler as Handler);
  }
  const byEvent = new Map<AuthEvent, Handler>();
  for (const event of EVENTS) {
    const name = namesFor(event).find((one) => registered.has(one));
    const handler = name === undefined ? undefined : registered.get(name);
    if (handler !== undefined) byEvent.set(event, handler);
  }
  return {
    authenticate: (request) => (authenticate as (request: Request) => unknown)(request),
    handlerOf: (event) => byEvent.get(event),
    uncovered: EVENTS.filter((event) => !byEvent.has(event)),
  };
};
