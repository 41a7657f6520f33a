import cors from "@fastify/cors";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { AllowedOrigins } from "./origins.ts";

/** What browsers may read of an answer; without them the SDK can't learn a run's id or a page's total. */
const EXPOSED_HEADERS = [
  "Content-Location",
  "Location",
  "X-Pagination-Total",
  "X-Pagination-Next",
  "X-Request-Id",
];

/** Seconds for which a browser may remember a preflight's answer. */
const PREFLIGHT_AGE_SECONDS = 600;

/**
 * Lets browsers in, on every answer: refusals too, or a page would only learn "failed to fetch". Requested headers
 * are reflected, since front ends send their own (`x-auth-scheme`, `x-supabase-access-token`, …).
 */
export const allowOrigins = async (app: FastifyInstance, origins: AllowedOrigins): Promise<void> => {
  // Before the plugin, which answers preflights itself: Chrome asks whether a public page may talk to a private
  // address, as Studio does.
  app.addHook("onRequest", (request, reply, done) => {
    if (request.headers["access-control-request-private-network"] !== undefined) {
      reply.header("access-control-allow-private-network", "true");
    }
    done();
  });
  await app.register(cors, {
    origin: origins.any ? "*" : [...origins.patterns],
    methods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"],
    exposedHeaders: EXPOSED_HEADERS,
    maxAge: PREFLIGHT_AGE_SECONDS,
    strictPreflight: false,
  });
};

/** For the few answers that are given before any hook runs, of a path that can't be read. */
export const allowOriginOf = (
  request: FastifyRequest,
  reply: FastifyReply,
  origins: AllowedOrigins,
): void => {
  const { origin } = request.headers;
  if (origins.any) reply.header("access-control-allow-origin", "*");
  else if (origin !== undefined && origins.allows(origin)) {
    reply.header("access-control-allow-origin", origin).header("vary", "Origin");
  }
};
