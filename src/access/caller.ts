/**
 * Who asks for something: decided once per request (api-keys.ts), and handed from the route to the service to
 * `Authorize`. A stream holds the caller of its request, so that it can ask again later.
 *
 * - `anonymous`: a request to a server without keys, or to a path that is open to everybody.
 * - `key`: a request with an API key. `id` is the start of the key's SHA-256: it names the key and does not reveal it.
 * - `server`: the server itself: its sweeps, its start, the graphs that it executes.
 */
export type Caller =
  | { readonly kind: "anonymous" }
  | { readonly kind: "key"; readonly id: string }
  | { readonly kind: "server" };

export const ANONYMOUS: Caller = Object.freeze({ kind: "anonymous" });

/** For what no request asks for. A route must not use it (test/access/authorize.test.ts). */
export const THE_SERVER: Caller = Object.freeze({ kind: "server" });
