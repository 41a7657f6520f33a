import type { JsonObject } from "../platform/lib/json.ts";

/** What a key is good for: `admin` is everything. A key of `API_KEYS` is the operator's own and has all three. */
export const KEY_SCOPES = ["read", "run", "admin"] as const;
export type KeyScope = (typeof KEY_SCOPES)[number];

/**
 * Who asks for something: decided once per request, and handed from the route to the service to `Authorize`. A stream
 * holds the caller of its request, so that it can ask again later.
 *
 * - `anonymous`: a request to a server without access control, or to a path that is open to everybody.
 * - `key`: a request with an API key. `id` names the key and does not reveal it.
 * - `user`: somebody whom the project's own `Auth` knows. `user` is all that its handler said of them, JSON.
 * - `server`: the server itself: its sweeps, its start, the graphs that it executes.
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

export const ANONYMOUS: Caller = Object.freeze({ kind: "anonymous" });

/** For what no request asks for. A route must not use it (test/access/authorize.test.ts). */
export const THE_SERVER: Caller = Object.freeze({ kind: "server" });

/** Tells callers apart who are counted, as by limits: one name for all requests of one caller. Undefined: nobody is named. */
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
