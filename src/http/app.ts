import { fastifySSE } from "@fastify/sse";
import Fastify, {
  LogController,
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from "fastify";
import type { Authenticate } from "../access/api-keys.ts";
import { unavailable } from "../platform/domain/errors.ts";
import { newId } from "../platform/lib/ids.ts";
import type { Logger } from "../platform/lib/logger.ts";
import type { ServerMetrics } from "../platform/metrics/metrics.ts";
import { refuseOwnWebhooks, type SiteCheck } from "./sites.ts";
import type { AroundApi, RoutePlugin } from "./route-plugin.ts";
import { callerGone } from "./caller-gone.ts";
import type { HoldAccess } from "../access/reauthorization.ts";
import type { Caller } from "../access/caller.ts";
import { boundAnswers } from "./large-answers.ts";
import type { Room } from "./room.ts";
import { acceptBodies, type BodyLimits } from "./bodies.ts";
import { allowOrigins, type CorsOptions } from "./cors.ts";
import { answerUnknownRoute, answerUnreadable, createAnswerError, refusalOf } from "./errors.ts";
import type { CallerLimits } from "./limits/caller-limits.ts";
import type { FailedLogins } from "./limits/failed-logins.ts";
import {
  answerBeforeClosing,
  limitConnections,
  serverOptionsOf,
  trackOpenAnswers,
  type ConnectionLimits,
} from "./open-answers.ts";
import { limitOwnRoutes, limitRequests } from "./limits/limit-requests.ts";
import { logRequests, offerConfigurableHeaders } from "./header-choice.ts";
import { createRewriteUrl, nameMountPrefix } from "./mount-prefix.ts";
import { markOpenRoutes, opennessOf } from "./open-routes.ts";
import type { HttpRules } from "../graphs/project/http.ts";
import { describeApi } from "./openapi.ts";
import type { ApiSecurity } from "./sign-in.ts";
import { traceRequests } from "./traced-requests.ts";
import { validatorCompiler } from "./validation.ts";
import { acceptWebSockets, endRefusedSocket } from "./websockets.ts";

export interface AppOptions {
  logger: Logger;
  authenticate: Authenticate;
  bodyLimits: BodyLimits;
  connectionLimits: ConnectionLimits;
  /** Undefined: no limits. */
  callerLimits?: CallerLimits | undefined;
  /** Undefined: access of open streams is never checked again. */
  holdAccess?: HoldAccess | undefined;
  /** Undefined: no limit on wrong credentials. */
  failedLogins?: FailedLogins | undefined;
  /** Proxies whose `X-Forwarded-For` is trusted. */
  trustedProxies?: readonly string[];
  cors: CorsOptions;
  /** Undefined: requests from any site are accepted. */
  siteCheck?: SiteCheck;
  readRoom: Room;
  /** For the OpenAPI document. */
  security?: ApiSecurity | undefined;
  routes: RoutePlugin[];
  /** `http` of langgraph.json. */
  rules?: HttpRules | undefined;
  /** The project's own application. */
  around?: AroundApi | undefined;
  /** Counts requests. Default: they are not counted. */
  metrics?: Pick<ServerMetrics, "request">;
  /** Whether requests get spans of OpenTelemetry. */
  exportsSpans?: boolean;
  /** Whether webhooks may not name routes of this API. */
  refusesOwnWebhooks?: boolean;
  /** A stopping server waits briefly for this. */
  socketsSettled?: () => Promise<void>;
}

/** In characters. UUIDs have 36; graph ids are names. */
const PATH_PARAMETER_AT_MOST = 1_000;
/** Statuses below are refusals. */
const FAULT = 500;

/** Of every answer. Browsers must not guess types: an answer may repeat what a caller sent. */
const NOSNIFF = ["x-content-type-options", "nosniff"] as const;

type Done = (error?: Error) => void;
/** `isOpen`: no authentication. Default: as the API's route declares. */
type CallerHook = (request: FastifyRequest, reply: FastifyReply, done: Done, isOpen?: boolean) => void;

const callerHook = (
  app: FastifyInstance,
  authenticate: Authenticate,
  logins: FailedLogins | undefined,
): CallerHook => {
  let closing = false;
  app.addHook("preClose", (done) => {
    closing = true;
    done();
  });
  const known = (request: FastifyRequest, caller: Caller): void => {
    if (caller.kind !== "anonymous") logins?.succeeded(request);
    request.caller = caller;
  };
  return (request, reply, done, isOpen = opennessOf(request) !== undefined) => {
    const refused = (error: unknown): void => {
      logins?.failed(request, error);
      done(error as Error);
    };
    try {
      if (closing) throw unavailable("This server is stopping; nothing was stored.");
      if ((request.caller as Caller | undefined) !== undefined) return done();
      if (!isOpen) logins?.assertMayTry(request);
      const { method, url, headers } = request;
      const gone = (): AbortSignal => callerGone(reply.raw);
      const caller = authenticate({ method, url, headers, isOpen, callerGone: gone });
      if (!(caller instanceof Promise)) {
        known(request, caller);
        return done();
      }
      caller.then((found) => {
        known(request, found);
        done();
      }, refused);
    } catch (error) {
      refused(error);
    }
  };
};

/** Authenticates first if the application around the API needs the caller. */
const callerHookBefore =
  (around: AroundApi, authenticate: CallerHook): CallerHook =>
  (request, reply, done) => {
    const why = around.authenticatesBefore(request);
    if (why === undefined) return done();
    if (why === "as the API does") return authenticate(request, reply, done);
    if (opennessOf(request) === undefined) return authenticate(request, reply, done, false);
    const passBy = (error?: Error): void => {
      if (error === undefined || (refusalOf(error)?.status ?? FAULT) >= FAULT) return done(error);
      around.passBy(request);
      done();
    };
    authenticate(request, reply, passBy, false);
  };

export const createApp = async (options: AppOptions): Promise<FastifyInstance> => {
  const { rules } = options;
  const mountPrefix = rules?.mountPrefix ?? "";
  const answerError = createAnswerError();
  const { connectionLimits, trustedProxies = [] } = options;
  const app: FastifyInstance = Fastify({
    // Fastify's info lines would repeat the line that main prints.
    loggerInstance: options.logger.child(
      {},
      { level: options.logger.level === "info" ? "warn" : options.logger.level },
    ) as FastifyBaseLogger,
    // Logging a request costs as much as answering it, and a proxy usually logs requests.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: options.bodyLimits.bytes,
    http: serverOptionsOf(connectionLimits),
    requestTimeout: connectionLimits.requestMs,
    keepAliveTimeout: connectionLimits.keepAliveMs,
    ...(trustedProxies.length > 0 ? { trustProxy: [...trustedProxies] } : {}),
    genReqId: () => newId(),
    rewriteUrl: createRewriteUrl(mountPrefix),
    // The server ends streams itself before it closes; see engine/events/transports/.
    forceCloseConnections: true,
    // Fastify's own 503 does not have the form of our errors; `callerHook` refuses instead.
    return503OnClosing: false,
    frameworkErrors(error, request, reply) {
      endRefusedSocket(request, reply);
      answerError(error, request, reply.header("x-request-id", request.id).header(...NOSNIFF));
    },
    clientErrorHandler: answerUnreadable,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: PATH_PARAMETER_AT_MOST },
  });
  const openAnswers = trackOpenAnswers(app, options.metrics?.request);
  if (options.exportsSpans === true) traceRequests(app);
  limitConnections(app, openAnswers, connectionLimits);
  app.setValidatorCompiler(validatorCompiler);
  // Response schemas are documentation only, because services build answers from the same types.
  app.setSerializerCompiler(() => (answer) => JSON.stringify(answer));
  app.setErrorHandler(answerError);
  app.setNotFoundHandler((request, reply) => answerUnknownRoute(request, reply));

  markOpenRoutes(app);
  nameMountPrefix(app, mountPrefix);
  offerConfigurableHeaders(app, rules?.configurableHeaders);
  logRequests(app, options.logger, rules?.loggingHeaders);
  const { siteCheck } = options;
  app.addHook("onRequest", (request, reply, done) => {
    reply.header("x-request-id", request.id).header(...NOSNIFF);
    try {
      // Must run before the CORS headers are set.
      const { method, headers } = request;
      siteCheck?.assertFromHere({ method, headers, isProbe: opennessOf(request) === "probe" });
      done();
    } catch (error) {
      done(error as Error);
    }
  });
  if (options.refusesOwnWebhooks === true) refuseOwnWebhooks(app);
  await allowOrigins(app, options.cors);
  app.decorateRequest("caller", undefined as never);
  app.decorateRequest("isWrapped", false);
  app.decorateRequest("holdAccess", function holdAccess(ask) {
    const { method, url, headers, caller } = this;
    return (
      options.holdAccess?.({ method, url, headers }, caller, ask) ?? {
        signal: new AbortController().signal,
        caller,
        release: () => undefined,
      }
    );
  });
  app.decorateRequest("isCounted", false);
  const authenticate = callerHook(app, options.authenticate, options.failedLogins);
  const { around } = options;
  if (around !== undefined) {
    const authenticateBefore = callerHookBefore(around, authenticate);
    app.addHook("onRequest", (request, reply, done) => authenticateBefore(request, reply, done));
    limitOwnRoutes(app, options.callerLimits);
    around.install(app);
  }
  acceptBodies(app, options.bodyLimits);
  boundAnswers(app, options.readRoom);
  app.addHook("onRequest", (request, reply, done) => authenticate(request, reply, done));
  answerBeforeClosing(app, openAnswers);
  // The plugin's heartbeat would end in a blank line; see engine/events/transports/server-sent-events.ts.
  await app.register(fastifySSE, { heartbeatInterval: 0 });
  await acceptWebSockets(app, {
    bytesAtMost: options.bodyLimits.bytes,
    settled: options.socketsSettled ?? (async () => undefined),
  });
  limitRequests(app, options.callerLimits);
  if (rules?.disabled.has("meta") !== true) await describeApi(app, mountPrefix, options.security);
  for (const routes of options.routes) await app.register(routes);
  return app;
};
