import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";

/** What a room's `routes.ts` makes: a Fastify plugin whose handlers' types come from the zod schemas. */
export type RoutePlugin = FastifyPluginAsyncZod;
