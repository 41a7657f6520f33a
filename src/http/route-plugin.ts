import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import type { ChosenHeaders } from "./header-choice.ts";
import type { HeldAccess, Reauthorize } from "../access/reauthorization.ts";
import type { Caller } from "../access/caller.ts";

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
