import type { FastifyInstance, FastifyRequest } from "fastify";

/** An application of the project's own around the API; made in server/custom-app/. */
export interface AroundApi {
  /**
   * Whether the caller of a request has to be known before the application is asked. `as the API does`: nobody is asked where its
   * route is open. `for itself`: also there, since a route of the application may stand in its place.
   */
  authenticatesBefore(request: FastifyRequest): "as the API does" | "for itself" | undefined;
  /** The caller is not known, and the API's route is open to everybody: it answers by itself, and the application is not asked. */
  passBy(request: FastifyRequest): void;
  /** Adds the hooks that ask it. Behind those that say who may call at all, before those that change a request. */
  install(app: FastifyInstance): void;
}

declare module "fastify" {
  interface FastifyRequest {
    /** What is answered goes through an application first: nothing may be written past Fastify's `reply.send`. */
    isWrapped?: boolean;
  }
}
