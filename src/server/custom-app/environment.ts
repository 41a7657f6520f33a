/** The official servers' form. */
export interface AppAuth {
  user: { identity: string; permissions: readonly string[]; [field: string]: unknown };
  scopes: readonly string[];
}

/** The second argument of `fetch`; in Hono `c.env`. */
export interface AppEnvironment {
  /** Node's request, for the sender's address. */
  incoming: unknown;
  /** Undefined for an unauthenticated caller. */
  auth: AppAuth | undefined;
  /** Callable once per request. */
  api: (request: Request) => Promise<Response>;
}
