import { createAuthorize, type Authorize } from "../../src/access/authorize.ts";
import { KEY_SCOPES, type Caller } from "../../src/access/caller.ts";
import type { Resource } from "../../src/access/actions.ts";
import { grantVisibility, type Visibility } from "../../src/access/visibility.ts";

/** As a server without filters has it. */
export const authorize = createAuthorize();

/** What the server itself sees. */
export const EVERY_THREAD = grantVisibility("threads");
/** The same, with what is to be stored. */
export const everyThreadWith = <Value>(value: Value) => grantVisibility("threads", undefined, value);
export const EVERY_ASSISTANT = grantVisibility("assistants");
export const ALL_RIGHTS = { threads: EVERY_THREAD, assistants: EVERY_ASSISTANT };
/** Every item of the store. */
export const EVERY_ITEM = grantVisibility("store");

/** A caller by name. */
export const caller = (id: string): Caller => ({ kind: "key", id, scopes: KEY_SCOPES });

/** What the owner of records sees: those with `{owner: id}` in their metadata. The server sees all. */
export const ownedBy = <R extends Resource, Value>(
  resource: R,
  id: string,
  value: Value,
): Visibility<R, Value> =>
  grantVisibility(resource, (metadata, parameter) => `${metadata} ->> 'owner' = ${parameter(id)}`, value);

/** Lets each key see what is its own, as a filter on metadata would. */
export const ownersOnly: Authorize = async (by, resource, _action, value) =>
  by.kind === "key" ? ownedBy(resource, by.id, value) : grantVisibility(resource, undefined, value);
