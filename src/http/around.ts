import type { FastifyInstance, FastifyRequest } from "fastify";

/** An application of the project's own around the API; made in custom-app/. */
export interface AroundApi {
  /** Whether the caller of a request has to be known before the application is asked. */
  authenticatesBefore(request: FastifyRequest): boolean;
  /** Adds the hooks that ask it. Behind those that say who may call at all, before those that change a request. */
  install(app: FastifyInstance): void;
  close(): Promise<void>;
}

declare module "fastify" {
  interface FastifyRequest {
    /** What is answered goes through an application first: nothing may be written past Fastify's `reply.send`. */
    isWrapped?: boolean;
  }
}
