import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import type { ChosenHeaders } from "./header-choice.ts";
import type { HeldAccess } from "../access/reauthorization.ts";
import type { Reauthorize } from "../access/reauthorization/groups.ts";
import type { Caller } from "../access/caller.ts";

/** What a room's `routes.ts` makes: a Fastify plugin whose handlers' types come from the zod schemas. */
export type RoutePlugin = FastifyPluginAsyncZod;

declare module "fastify" {
  interface FastifyContextConfig {
    /** The route takes values of graphs or of the store, which may be large. All others take what is small. */
    largeBody?: boolean;
    /** The route changes nothing though it is no GET: what it would answer may be refused. */
    isRead?: boolean;
    /** The route takes WebSockets; on all others they are refused. */
    webSocket?: boolean;
  }
  interface FastifyRequest {
    /** Who makes this request; known before any handler is called (app.ts). */
    caller: Caller;
    /** For what stays open: has it asked again whether the caller may go on. Its owner releases it. */
    holdAccess(ask: Reauthorize): HeldAccess;
    /**
     * For a handler that goes on for long: says that it needs the body no more. It is gone then, and no longer counts
     * among what this server has taken in at the moment.
     */
    releaseBody(): void;
    /** Headers of this request that its runs find in `config.configurable`, as langgraph.json says; undefined for none. */
    configurableHeaders(): ChosenHeaders | undefined;
  }
  interface FastifyInstance {
    /** What stands in front of each path of this server: for addresses that routes send. Empty, or without a slash at its end. */
    mountPrefix: string;
  }
}
