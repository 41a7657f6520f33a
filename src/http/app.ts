import cors from "@fastify/cors";
import { fastifySSE } from "@fastify/sse";
import Fastify, { type FastifyBaseLogger, type FastifyInstance } from "fastify";
import { validatorCompiler } from "fastify-type-provider-zod";
import type { Authenticate } from "../auth/api-keys.ts";
import { newId } from "../lib/ids.ts";
import type { Logger } from "../lib/logger.ts";
import type { RoutePlugin } from "../lib/route-plugin.ts";
import { acceptBodies } from "./bodies.ts";
import { answerError, answerUnknownRoute } from "./errors.ts";
import { describeApi } from "./openapi.ts";

export interface AppOptions {
  logger: Logger;
  authenticate: Authenticate;
  /** Bytes that a request's body may have. */
  bodyLimit: number;
  corsAllowOrigins: string[];
  routes: RoutePlugin[];
}

/** A request must have arrived whole within this time; answering may take as long as a run does. */
const REQUEST_TIMEOUT_MS = 60_000;
/** Seconds between the comments that keep a stream alive; SDKs take two of them as the measure of silence. */
export const HEARTBEAT_MS = 5_000;

/** What browsers may read of an answer; without them the SDK can't learn a run's id or a page's total. */
const EXPOSED_HEADERS = [
  "Content-Location",
  "Location",
  "X-Pagination-Total",
  "X-Pagination-Next",
  "X-Request-Id",
];

/** Builds the HTTP application; it does not listen yet. */
export const createApp = async (options: AppOptions): Promise<FastifyInstance> => {
  const app: FastifyInstance = Fastify({
    loggerInstance: options.logger as FastifyBaseLogger,
    disableRequestLogging: true,
    bodyLimit: options.bodyLimit,
    requestTimeout: REQUEST_TIMEOUT_MS,
    genReqId: () => newId(),
    // Streams are ended by the server itself before it closes; see streaming/.
    forceCloseConnections: true,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 1_000 },
  });
  app.setValidatorCompiler(validatorCompiler);
  // Answers are built by the services, from the same types; the response schemas are documentation.
  app.setSerializerCompiler(() => (answer) => JSON.stringify(answer));
  app.setErrorHandler(answerError);
  app.setNotFoundHandler(answerUnknownRoute);
  acceptBodies(app);

  const anyOrigin = options.corsAllowOrigins.includes("*");
  await app.register(cors, {
    origin: anyOrigin ? "*" : options.corsAllowOrigins,
    methods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"],
    exposedHeaders: EXPOSED_HEADERS,
    maxAge: 600,
    strictPreflight: false,
  });
  app.addHook("onRequest", async (request, reply) => {
    reply.header("x-request-id", request.id);
    // Chrome asks before a public page (Studio) may talk to a private address.
    if (request.headers["access-control-request-private-network"] !== undefined) {
      reply.header("access-control-allow-private-network", "true");
    }
    options.authenticate(request);
  });
  await app.register(fastifySSE, { heartbeatInterval: HEARTBEAT_MS });
  await describeApi(app);
  for (const routes of options.routes) await app.register(routes);
  await app.ready();
  return app;
};
