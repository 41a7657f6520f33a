import type { Actions, Resource } from "../actions.ts";
import { KEY_SCOPES, type KeyScope } from "../caller.ts";

/**
 * The least scope that each action needs; `run` includes `read`, and `admin` includes both. `read`: what is stored can be seen.
 * `run`: what an application does for its users: threads, runs, what it remembers in the store. `admin`: what changes the
 * deployment for others (assistants), goes on after the key is revoked (crons), or can't be undone (deleting threads).
 * Deleting items of the store is `run`: putting another value in their place destroys as much.
 */
const NEEDED: { readonly [R in Resource]: { readonly [Action in Actions[R]]: KeyScope } } = {
  assistants: { create: "admin", read: "read", update: "admin", delete: "admin", search: "read" },
  threads: {
    create: "run",
    read: "read",
    update: "run",
    delete: "admin",
    search: "read",
    create_run: "run",
  },
  crons: { create: "admin", read: "read", update: "admin", delete: "admin", search: "read" },
  store: { put: "run", get: "read", search: "read", list_namespaces: "read", delete: "run" },
};

/** The scope that an action needs. */
export const scopeNeeded = <R extends Resource>(resource: R, action: Actions[R]): KeyScope =>
  NEEDED[resource][action];

const rankOf = (scope: KeyScope): number => KEY_SCOPES.indexOf(scope);

/** Whether a key with these scopes may do what needs that one. */
export const isWithin = (scopes: readonly KeyScope[], needed: KeyScope): boolean =>
  scopes.some((scope) => rankOf(scope) >= rankOf(needed));

export const isScope = (text: string): text is KeyScope => (KEY_SCOPES as readonly string[]).includes(text);
