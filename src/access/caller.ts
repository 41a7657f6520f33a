import type { JsonObject } from "../platform/lib/json.ts";

/** In ascending order. Keys of `API_KEYS` have all three. */
export const KEY_SCOPES = ["read", "run", "admin"] as const;
export type KeyScope = (typeof KEY_SCOPES)[number];

/**
 * Streams keep the caller of their request for later checks.
 *
 * - `anonymous`: a server without access control, or an open route.
 * - `key`: an API key; `id` does not reveal it.
 * - `user`: a user of the project's `Auth`; `user` is the handler's answer as JSON.
 * - `server`: the server's own work, such as sweeps, startup and graphs.
 */
export type Caller =
  | { readonly kind: "anonymous" }
  | { readonly kind: "key"; readonly id: string; readonly scopes: readonly KeyScope[] }
  | {
      readonly kind: "user";
      readonly identity: string;
      readonly permissions: readonly string[];
      readonly user: JsonObject;
    }
  | { readonly kind: "server" };

export type UserCaller = Extract<Caller, { kind: "user" }>;

export const ANONYMOUS: Caller = Object.freeze({ kind: "anonymous" });

/** Routes must not use it (test/access/authorize.test.ts). */
export const THE_SERVER: Caller = Object.freeze({ kind: "server" });

/** One name for all requests of a caller, for limits. Undefined: not identified. */
export const callerName = (caller: Caller): string | undefined => {
  switch (caller.kind) {
    case "key":
      return `key:${caller.id}`;
    case "user":
      return `user:${caller.identity}`;
    case "anonymous":
    case "server":
      return undefined;
  }
};
