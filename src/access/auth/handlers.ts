import { EVENTS, type AuthEvent } from "../values.ts";

/** The SDK's `AuthCallbackParameter`. */
interface HandlerArgument {
  event: AuthEvent;
  resource: string;
  action: string;
  value: unknown;
  permissions: string[];
  user: Record<string, unknown>;
}

export interface AuthHandlers {
  authenticate(request: Request): unknown;
  /** The most specific handler of the event. Undefined: the event is allowed. */
  handlerOf(event: AuthEvent): ((argument: HandlerArgument) => unknown) | undefined;
  readonly uncovered: readonly AuthEvent[];
}

/** The field of the SDK's `Auth` that stores its functions. */
const CACHE = "~handlerCache";

type Handler = (argument: HandlerArgument) => unknown;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

/** Most specific first. */
const namesFor = (event: AuthEvent): string[] => {
  const [resource = "", action = ""] = event.split(":");
  return [event, resource, `*:${action}`, "*"];
};

/** Handlers of other names would never be called. */
const KNOWN = new Set(EVENTS.flatMap(namesFor));

/**
 * Recognizes an `Auth` by its functions, because another copy of the SDK may have created it. Returns the predicate of
 * an error sentence for anything else.
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
    return "has no authenticate handler: call .authenticate(handler)";
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
