import type { Actions, Resource } from "../values.ts";
import { KEY_SCOPES, type KeyScope } from "../caller.ts";

/**
 * The lowest scope that allows each action. Each scope includes those before it in `KEY_SCOPES`.
 *
 * `admin` covers changes for other users (assistants), work that outlives the key (crons), and deleting threads. `run`
 * may delete store items, because overwriting them destroys as much.
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

export const scopeNeeded = <R extends Resource>(resource: R, action: Actions[R]): KeyScope =>
  NEEDED[resource][action];

const rankOf = (scope: KeyScope): number => KEY_SCOPES.indexOf(scope);

export const isWithin = (scopes: readonly KeyScope[], needed: KeyScope): boolean =>
  scopes.some((scope) => rankOf(scope) >= rankOf(needed));

export const isScope = (text: string): text is KeyScope => (KEY_SCOPES as readonly string[]).includes(text);
