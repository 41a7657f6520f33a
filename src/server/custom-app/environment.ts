/** What an application knows of who calls, as the official servers say it. */
export interface AppAuth {
  user: { identity: string; permissions: readonly string[]; [field: string]: unknown };
  scopes: readonly string[];
}

/** What stands around a request: the second argument of `fetch`. In Hono it is `c.env`. */
export interface AppEnvironment {
  /** The request as Node has it, for the address of its sender. */
  incoming: unknown;
  /** Undefined for a caller that is not known (yet). */
  auth: AppAuth | undefined;
  /** The API's answer. Once for each request. */
  api: (request: Request) => Promise<Response>;
}
