import { forbidden, ThreadloomError, unavailable } from "../../platform/domain/errors.ts";
import type { CausedByProject } from "../../platform/lib/contents.ts";
import { type Actions, type Resource, RETURNED, type AuthEvent, type ValueOf, EVENTS } from "../values.ts";
import { readFilter, type ReadFilter, isPlainObject } from "./filters.ts";
import { refusalIn } from "./refusals.ts";
import type { UserCaller } from "../caller.ts";

/** A handler failed or returned an invalid answer. The caller only gets a 500. */
export class HandlerError extends Error implements CausedByProject {
  readonly causedByProject = true;
  override readonly name = "HandlerError";
}

interface Decision<Value> {
  /** The requested value with the handler's changes. */
  value: Value;
  /** Undefined: nothing is hidden. */
  filter: ReadFilter | undefined;
}

const checked = <Value>(event: AuthEvent, value: Value): Value => {
  const schema = RETURNED[event];
  if (schema === undefined) return value;
  const result = schema.safeParse(value);
  if (result.success) return result.data as Value;
  const [issue] = result.error.issues;
  throw new HandlerError(
    `The handler of ${event} set an invalid value: '${issue?.path.join(".") ?? ""}' ${issue?.message ?? ""}.`,
  );
};

const decisionOf = (
  event: AuthEvent,
  answer: unknown,
  encryptedKeys: ReadonlySet<string> | undefined,
): ReadFilter | undefined => {
  if (answer === undefined || answer === null || answer === true) return undefined;
  if (answer === false) throw forbidden("You may not do this.");
  if (typeof answer !== "object") {
    throw new HandlerError(
      `The handler of ${event} answered a ${typeof answer}: nothing, a boolean or a filter is expected.`,
    );
  }
  try {
    return readFilter(answer, encryptedKeys);
  } catch (cause) {
    throw new HandlerError(`The handler of ${event} answered a filter that can't be understood.`, { cause });
  }
};

/** Recursive, because bodies are bounded in depth (http/bodies.ts). */
const copyOf = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(copyOf);
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, copyOf(inner)]));
};

interface DecisionOptions {
  handlerSeconds?: number;
  /** Keys of encrypted metadata, by which a handler must not filter. */
  encryptedKeys?: ReadonlySet<string> | undefined;
}

export const createDecisions = (
  handlers: Pick<AuthHandlers, "handlerOf">,
  { handlerSeconds = HANDLER_SECONDS, encryptedKeys }: DecisionOptions = {},
) => {
  const ask = async (
    handler: NonNullable<ReturnType<AuthHandlers["handlerOf"]>>,
    argument: Parameters<typeof handler>[0],
  ): Promise<unknown> => {
    try {
      return await inTime(handler(argument), handlerSeconds * 1_000);
    } catch (error) {
      if (error instanceof ThreadloomError && error.kind === "unavailable") throw error;
      throw (
        refusalIn(error) ?? new HandlerError(`The handler of ${argument.event} failed.`, { cause: error })
      );
    }
  };

  /**
   * Undefined: no handler covers the event. Rejects with `forbidden`, the handler's refusal, `unavailable` after the
   * time-out, or `HandlerError`.
   */
  return async <R extends Resource, A extends Actions[R]>(
    { user, permissions }: UserCaller,
    resource: R,
    action: A,
    asked: ValueOf<R, A>,
  ): Promise<Decision<ValueOf<R, A>> | undefined> => {
    const event = `${resource}:${action}` as AuthEvent;
    const handler = handlers.handlerOf(event);
    if (handler === undefined) return undefined;
    // A handler may change the value at any depth.
    const value = copyOf(asked) as ValueOf<R, A>;
    const argument = { event, resource, action, value, permissions: [...permissions], user: { ...user } };
    // Store items have no metadata.
    const encrypted = resource === "store" ? undefined : encryptedKeys;
    const filter = decisionOf(event, await ask(handler, argument), encrypted);
    // The handler may have assigned another object to `argument.value`.
    return { value: checked(event, argument.value), filter };
  };
};

export type Decisions = ReturnType<typeof createDecisions>;

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

/** Handlers may call remote servers while requests wait. */
export const HANDLER_SECONDS = 10;

/**
 * Throws `unavailable` if a handler's answer is late. `gone`: called only for promises; aborts when the caller leaves.
 */
export const inTime = async (answer: unknown, ms: number, gone?: () => AbortSignal): Promise<unknown> => {
  if (!(answer instanceof Object) || typeof (answer as { then?: unknown }).then !== "function") return answer;
  const signal = gone?.();
  let timer: NodeJS.Timeout | undefined;
  let onGone: (() => void) | undefined;
  const limit = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(unavailable("The handlers of 'auth' did not answer in time; try again.")),
      ms,
    );
    onGone = () => reject(signal?.reason as Error);
    signal?.addEventListener("abort", onGone, { once: true });
    if (signal?.aborted) onGone();
  });
  try {
    return await Promise.race([answer, limit]);
  } finally {
    clearTimeout(timer);
    if (onGone !== undefined) signal?.removeEventListener("abort", onGone);
  }
};
