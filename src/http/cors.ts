import cors from "@fastify/cors";
import type { FastifyInstance } from "fastify";
import { corsRulesOf, type CorsRules } from "../graphs/project/http.ts";
import type { AllowedOrigins } from "./sites.ts";

/** Response headers that pages may read. Without them the SDK cannot learn a run's id or a page's total. */
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

/** Headers that pages may always send (CORS-safelisted). */
const SAFE_HEADERS = ["Accept", "Accept-Language", "Content-Language", "Content-Type"];

const ANY = "*";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/** Without `http.cors` in langgraph.json. */
const USUAL_RULES = corsRulesOf({});

export interface CorsOptions {
  origins: AllowedOrigins;
  /** `http.cors` of langgraph.json without the origins. */
  rules?: CorsRules | undefined;
}

/**
 * Credentials are only for named origins. Browsers refuse `*` with credentials, and reflecting any origin would let
 * every page act for its visitor.
 */
const takesCredentials = ({ origins, rules }: CorsOptions): boolean =>
  rules?.credentials === true && !origins.any;

/**
 * Refusals need these headers, too: a page cannot read them otherwise. Reflects requested headers unless langgraph.json
 * lists them, because front ends send their own.
 */
export const allowOrigins = async (app: FastifyInstance, options: CorsOptions): Promise<void> => {
  const { origins, rules = USUAL_RULES } = options;
  // Before the plugin, which answers preflights. Chrome asks whether a public page, such as Studio, may call a private
  // address.
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
          // The server may have got its first key meanwhile.
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
