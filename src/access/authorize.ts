import { keyNeeded, notAuthenticated, scopeMissing, unknownKey } from "../platform/domain/errors.ts";
import type { Logger } from "../platform/lib/logger.ts";
import type { Actions, Resource, ValueOf } from "./values.ts";
import type { ApiKeys } from "./api-keys.ts";
import type { Decisions } from "./auth/decisions.ts";
import type { ReadFilter } from "./auth/filters.ts";
import type { Caller } from "./caller.ts";
import { isWithin, scopeNeeded } from "./keys/scopes.ts";
import { grantVisibility, type Condition, type Permission } from "./visibility.ts";

/**
 * Each service method calls this once per action before it uses a repository, and stores `permission.value`, because
 * handlers may change the value. Rejects with `unauthenticated`, `forbidden` or a `HandlerRefusal`.
 */
export type Authorize = <R extends Resource, A extends Actions[R]>(
  caller: Caller,
  resource: R,
  action: A,
  value: ValueOf<R, A>,
) => Promise<Permission<R, A>>;

interface AuthorizeOptions {
  /** Undefined: keys are not checked again. */
  keys?: Pick<ApiKeys, "areAsked" | "hold">;
  /** Of the project's `Auth`. Undefined: every caller may do everything. */
  decisions?: Decisions | undefined;
  /** The default assistants of the graphs, which every caller may read. */
  systemAssistantIds?: readonly string[];
  logger?: Pick<Logger, "warn"> | undefined;
}

export type AssertKnown = (caller: Caller) => void;

/** Throws if a caller's key was revoked, or if an open server got its first key. Reads memory only. */
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

/** The only source of visibility. Streams and sockets call this repeatedly, so it checks the caller again. */
export const createAuthorize = ({
  keys,
  decisions,
  systemAssistantIds = [],
  logger,
}: AuthorizeOptions = {}): Authorize => {
  const assertKnown = createAssertKnown({ keys, decisions });
  let isLogged = false;
  const logValuesFilter = (action: string): void => {
    if (isLogged) return;
    isLogged = true;
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
      // For assistants, `metadata` is the column itself, with or without an alias.
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
