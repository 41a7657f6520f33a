import type { FastifyInstance, FastifyRequest } from "fastify";

/** The project's own application around the API; built in server/custom-app/. */
export interface AroundApi {
  /**
   * Whether to authenticate before the application is called. `as the API does`: not on open routes. `for itself`: on
   * open routes too, because a route of the application may replace them.
   */
  authenticatesBefore(request: FastifyRequest): "as the API does" | "for itself" | undefined;
  /** The caller is unknown and the API's route is open: the API answers without calling the application. */
  passBy(request: FastifyRequest): void;
  /** Adds the hooks that call the application: after those that refuse callers, before those that change a request. */
  install(app: FastifyInstance): void;
}

declare module "fastify" {
  interface FastifyRequest {
    /** The answer passes through an application first, so all of it must go through Fastify's `reply.send`. */
    isWrapped?: boolean;
  }
}
