import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import type { ChosenHeaders } from "./header-choice.ts";
import type { HeldAccess, Reauthorize } from "../access/reauthorization.ts";
import type { Caller } from "../access/caller.ts";
import type { FastifyInstance, FastifyRequest } from "fastify";

/** A room's `routes.ts` returns this Fastify plugin. Its handlers get their types from the zod schemas. */
export type RoutePlugin = FastifyPluginAsyncZod;

declare module "fastify" {
  interface FastifyContextConfig {
    /** The route accepts values of graphs or of the store, which may be large. */
    largeBody?: boolean;
    /** The route changes nothing although its method is not GET, so its answer may be refused. */
    isRead?: boolean;
    webSocket?: boolean;
  }
  interface FastifyRequest {
    /** Set before any handler is called (app.ts). */
    caller: Caller;
    /** For open streams: checks repeatedly whether the caller may continue. The route must release it. */
    holdAccess(ask: Reauthorize): HeldAccess;
    /** Headers that runs get in `config.configurable`, as langgraph.json chooses; undefined for none. */
    configurableHeaders(): ChosenHeaders | undefined;
  }
  interface FastifyInstance {
    /** Prefix of all paths, for addresses that routes send. Empty, or without a trailing slash. */
    mountPrefix: string;
  }
}

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
