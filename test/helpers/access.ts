import { createApiKeys, type AccessRequest } from "../../src/access/api-keys.ts";
import { createAuthorize, type Authorize } from "../../src/access/authorize.ts";
import { KEY_SCOPES, type Caller } from "../../src/access/caller.ts";
import type { Resource } from "../../src/access/values.ts";
import { grantVisibility, type Visibility } from "../../src/access/visibility.ts";

/** Checks configured keys only, which needs no waiting. */
export const createAuthenticate = (apiKeys: readonly string[]): ((request: AccessRequest) => Caller) =>
  createApiKeys({ configured: apiKeys }).authenticate as (request: AccessRequest) => Caller;

/** As in a server without filters. */
export const authorize = createAuthorize();

/** The visibility of the server itself. */
export const EVERY_THREAD = grantVisibility("threads");
/** The same, with a value to store. */
export const everyThreadWith = <Value>(value: Value) => grantVisibility("threads", undefined, value);
export const EVERY_ASSISTANT = grantVisibility("assistants");
export const ALL_RIGHTS = { threads: EVERY_THREAD, assistants: EVERY_ASSISTANT };
export const EVERY_ITEM = grantVisibility("store");

export const caller = (id: string): Caller => ({ kind: "key", id, scopes: KEY_SCOPES });

/** The visibility of an owner: records with `{owner: id}` in their metadata. The server sees all. */
export const ownedBy = <R extends Resource, Value>(
  resource: R,
  id: string,
  value: Value,
): Visibility<R, Value> =>
  grantVisibility(resource, (metadata, parameter) => `${metadata} ->> 'owner' = ${parameter(id)}`, value);

/** Shows each key only its own records, like a filter on metadata. */
export const ownersOnly: Authorize = async (by, resource, _action, value) =>
  by.kind === "key" ? ownedBy(resource, by.id, value) : grantVisibility(resource, undefined, value);
