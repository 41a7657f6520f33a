import { keyNeeded, scopeMissing, unknownKey } from "../domain/errors.ts";
import type { Actions, Resource } from "./actions.ts";
import type { ApiKeys } from "./api-keys.ts";
import type { Caller } from "./caller.ts";
import { isWithin, scopeNeeded } from "./keys/scopes.ts";
import { grantVisibility, type Visibility } from "./visibility.ts";

/**
 * Decides what of a resource a caller may do this with. Every method of a service asks it, once for each action, before
 * it touches a repository. Rejects with `unauthenticated` or `forbidden` if the caller may not at all.
 */
export type Authorize = <R extends Resource>(
  caller: Caller,
  resource: R,
  action: Actions[R],
) => Promise<Visibility<R>>;

export interface AuthorizeOptions {
  /** Left out: keys are taken at their word. */
  keys?: Pick<ApiKeys, "areAsked" | "hold">;
}

/**
 * The one place where visibility comes from. A key may do what its scopes say and sees everything; a server without keys has
 * nobody to tell apart. Streams and sockets ask again, and by then a key may be revoked, or an open server may have got its
 * first one. A promise all the same: who decides later may have to look something up.
 */
export const createAuthorize = ({ keys }: AuthorizeOptions = {}): Authorize => {
  const everything: { [R in Resource]: Visibility<R> } = {
    assistants: grantVisibility("assistants"),
    threads: grantVisibility("threads"),
    crons: grantVisibility("crons"),
    store: grantVisibility("store"),
  };
  return async (caller, resource, action) => {
    if (caller.kind === "anonymous" && keys?.areAsked === true) throw keyNeeded();
    if (caller.kind === "key") {
      if (keys?.hold(caller) === false) throw unknownKey();
      const needed = scopeNeeded(resource, action);
      if (!isWithin(caller.scopes, needed)) throw scopeMissing(`${resource}:${action}`, needed);
    }
    return everything[resource];
  };
};
