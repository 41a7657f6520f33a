import cors from "@fastify/cors";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { CorsRules } from "../graphs/project/cors.ts";
import type { AllowedOrigins } from "./origins.ts";

/** What browsers may read of an answer; without them the SDK can't learn a run's id or a page's total. */
const EXPOSED_HEADERS = [
  "Content-Location",
  "Location",
  "X-Pagination-Total",
  "X-Pagination-Next",
  "X-Pagination-Cursor",
  "X-Request-Id",
  "Retry-After",
  "RateLimit-Limit",
  "RateLimit-Remaining",
  "RateLimit-Reset",
];

/** Headers that a page may always send, by the rules of the web. */
const SAFE_HEADERS = ["Accept", "Accept-Language", "Content-Language", "Content-Type"];

const ANY = "*";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/** What holds where langgraph.json says nothing: 600 s are what the hosted service has. */
const USUAL_RULES: CorsRules = {
  origins: undefined,
  originPattern: undefined,
  methods: undefined,
  headers: undefined,
  exposedHeaders: [],
  credentials: false,
  maxAgeSeconds: 600,
};

export interface CorsOptions {
  origins: AllowedOrigins;
  /** `http.cors` of langgraph.json, but for the origins. */
  rules?: CorsRules | undefined;
}

/**
 * Cookies are for origins that are named: `*` with credentials is what browsers refuse, and to reflect any origin instead
 * would let every page act for whoever opens it.
 */
const takesCredentials = ({ origins, rules }: CorsOptions): boolean =>
  rules?.credentials === true && !origins.any;

/**
 * Lets browsers in, on every answer: refusals too, or a page would only learn "failed to fetch". Requested headers
 * are reflected, since front ends send their own (`x-auth-scheme`, `x-supabase-access-token`, …), unless langgraph.json
 * lists them.
 */
export const allowOrigins = async (app: FastifyInstance, options: CorsOptions): Promise<void> => {
  const { origins, rules = USUAL_RULES } = options;
  // Before the plugin, which answers preflights itself: Chrome asks whether a public page may talk to a private
  // address, as Studio does.
  app.addHook("onRequest", (request, reply, done) => {
    if (request.headers["access-control-request-private-network"] !== undefined) {
      reply.header("access-control-allow-private-network", "true");
    }
    done();
  });
  await app.register(cors, {
    origin: origins.any
      ? ANY
      : (origin, done) => {
          // The first key may have been made since.
          if (origins.any) return done(null, ANY);
          return done(null, origin !== undefined && origins.allows(origin) ? origin : []);
        },
    credentials: takesCredentials(options),
    methods: [...(rules.methods ?? METHODS)],
    ...(rules.headers === undefined ? {} : { allowedHeaders: [...SAFE_HEADERS, ...rules.headers] }),
    exposedHeaders: [...EXPOSED_HEADERS, ...rules.exposedHeaders],
    maxAge: rules.maxAgeSeconds,
    strictPreflight: false,
  });
};

/** For the few answers that are given before any hook runs, of a path that can't be read. */
export const allowOriginOf = (request: FastifyRequest, reply: FastifyReply, options: CorsOptions): void => {
  const { origins } = options;
  const { origin } = request.headers;
  if (origins.any) reply.header("access-control-allow-origin", ANY);
  else if (origin !== undefined && origins.allows(origin)) {
    reply.header("access-control-allow-origin", origin).header("vary", "Origin");
    if (takesCredentials(options)) reply.header("access-control-allow-credentials", "true");
  }
};
