import type { FastifyInstance, FastifyRequest } from "fastify";

/** The project's own application around the API; built in server/custom-app/. */
export interface AroundApi {
  /**
   * Whether to authenticate before the application is called. `as the API does`: not on open routes; `for itself`: also
   * on open routes, because a route of the application may replace them.
   */
  authenticatesBefore(request: FastifyRequest): "as the API does" | "for itself" | undefined;
  /** For an unknown caller of an open route: the API answers without calling the application. */
  passBy(request: FastifyRequest): void;
  /**
   * Adds the hooks that call the application, after hooks that refuse callers and before hooks that change a request.
   */
  install(app: FastifyInstance): void;
}

declare module "fastify" {
  interface FastifyRequest {
    /** All of the answer must go through Fastify's `reply.send`, because it passes through an application first. */
    isWrapped?: boolean;
  }
}
