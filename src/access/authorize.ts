import { keyNeeded, notAuthenticated, scopeMissing, unknownKey } from "../platform/domain/errors.ts";
import type { Logger } from "../platform/lib/logger.ts";
import type { Actions, Resource } from "./actions.ts";
import type { ApiKeys } from "./api-keys.ts";
import type { Decisions } from "./auth/decisions.ts";
import type { ReadFilter } from "./auth/filters.ts";
import type { Caller } from "./caller.ts";
import { isWithin, scopeNeeded } from "./keys/scopes.ts";
import type { ValueOf } from "./values.ts";
import { grantVisibility, type Condition, type Permission } from "./visibility.ts";

/**
 * Decides what of a resource a caller may do this with. Every method of a service asks it, once for each action, before
 * it touches a repository. `value`: what the caller wants to do; what may be done, and is to be stored, is the permission's,
 * which the project's handlers may have changed. Rejects with `unauthenticated`, `forbidden` or a `HandlerRefusal` if the
 * caller may not at all.
 */
export type Authorize = <R extends Resource, A extends Actions[R]>(
  caller: Caller,
  resource: R,
  action: A,
  value: ValueOf<R, A>,
) => Promise<Permission<R, A>>;

export interface AuthorizeOptions {
  /** Left out: keys are taken at their word. */
  keys?: Pick<ApiKeys, "areAsked" | "hold">;
  /** Of the project's `Auth`; undefined: whoever has got in may do everything. */
  decisions?: Decisions | undefined;
  /** Ids of the assistants that graph ids stand for: everybody may read them. */
  systemAssistantIds?: readonly string[];
  logger?: Pick<Logger, "warn"> | undefined;
}

export type AssertKnown = (caller: Caller) => void;

/** Throws if a caller who was let in is nobody any more: its key is revoked, or an open server has got its first one. From memory. */
export const createAssertKnown =
  ({ keys, decisions }: Pick<AuthorizeOptions, "keys" | "decisions">): AssertKnown =>
  (caller) => {
    if (caller.kind === "anonymous") {
      if (decisions !== undefined) throw notAuthenticated();
      if (keys?.areAsked === true) throw keyNeeded();
    }
    if (caller.kind === "key" && keys?.hold(caller) === false) throw unknownKey();
  };

const isReading = (action: string): boolean => action === "read" || action === "search";

/**
 * The one place where visibility comes from. A key may do what its scopes say and sees everything; a server without access
 * control has nobody to tell apart. Of users the project's handlers decide. Streams and sockets ask again, and by then a key may
 * be revoked, an open server may have got its first one, and a handler may think otherwise.
 */
export const createAuthorize = ({
  keys,
  decisions,
  systemAssistantIds = [],
  logger,
}: AuthorizeOptions = {}): Authorize => {
  const assertKnown = createAssertKnown({ keys, decisions });
  let isTold = false;
  const logValuesFilter = (action: string): void => {
    if (isTold) return;
    isTold = true;
    const text =
      "a handler of auth answers with a filter for the store that names neither 'namespace' nor 'key': it holds only for " +
      "items whose values have these fields; give 'store' a handler of its own";
    logger?.warn({ event: `store:${action}` }, text);
  };

  const conditionOf = (
    resource: Resource,
    action: string,
    filter: ReadFilter | undefined,
  ): Condition | undefined => {
    if (filter === undefined || filter.condition === undefined) return undefined;
    const { condition } = filter;
    if (resource === "store" && !filter.namesAddress) logValuesFilter(action);
    if (resource !== "assistants" || !isReading(action)) return condition;
    return (metadata, parameter) => {
      const assistantId = metadata.replace(/metadata$/, "assistant_id");
      return `(${condition(metadata, parameter)} or ${assistantId} = any(${parameter(systemAssistantIds)}::uuid[]))`;
    };
  };

  return async (caller, resource, action, value) => {
    assertKnown(caller);
    if (caller.kind === "key") {
      const needed = scopeNeeded(resource, action);
      if (!isWithin(caller.scopes, needed)) throw scopeMissing(`${resource}:${action}`, needed);
    }
    if (caller.kind !== "user" || decisions === undefined) return grantVisibility(resource, undefined, value);
    const decision = await decisions(caller, resource, action, value);
    const { user } = caller;
    if (decision === undefined) return grantVisibility(resource, undefined, value, user);
    return grantVisibility(resource, conditionOf(resource, action, decision.filter), decision.value, user);
  };
};
