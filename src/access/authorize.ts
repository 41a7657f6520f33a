import type { Caller } from "./caller.ts";
import type { Actions, Resource } from "./actions.ts";
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

/**
 * The one place where visibility comes from. Whoever has got here may do everything: a key is the operator's own, and a
 * server without keys has nobody to tell apart. A promise all the same: who decides later may have to look something up.
 */
export const createAuthorize = (): Authorize => {
  const everything: { [R in Resource]: Visibility<R> } = {
    assistants: grantVisibility("assistants"),
    threads: grantVisibility("threads"),
    crons: grantVisibility("crons"),
    store: grantVisibility("store"),
  };
  return async (_caller, resource) => everything[resource];
};
