import { forbidden, ThreadloomError } from "../../platform/domain/errors.ts";
import type { CausedByProject } from "../../platform/lib/contents.ts";
import type { Actions, Resource } from "../actions.ts";
import { RETURNED, type AuthEvent, type ValueOf } from "../values.ts";
import { readFilter, type ReadFilter } from "./filters.ts";
import { giveValue } from "./given-values.ts";
import type { AuthHandlers } from "./handlers.ts";
import { refusalIn } from "./refusals.ts";
import { HANDLER_SECONDS, inTime } from "./time-limits.ts";
import type { UserCaller } from "./users.ts";

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
    const { value, settle } = giveValue<ValueOf<R, A>>(asked);
    const argument = { event, resource, action, value, permissions: [...permissions], user: { ...user } };
    // Store items have no metadata.
    const encrypted = resource === "store" ? undefined : encryptedKeys;
    const filter = decisionOf(event, await ask(handler, argument), encrypted);
    settle();
    // The handler may have assigned another object to `argument.value`.
    return { value: checked(event, argument.value), filter };
  };
};

export type Decisions = ReturnType<typeof createDecisions>;
