import type { AnswerRoom } from "./answer-room.ts";
import { fastifySSE } from "@fastify/sse";
import Fastify, {
  LogController,
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from "fastify";
import type { Authenticate } from "../access/api-keys.ts";
import { unavailable } from "../domain/errors.ts";
import { newId } from "../lib/ids.ts";
import type { Logger } from "../lib/logger.ts";
import type { RoutePlugin } from "./route-plugin.ts";
import { callerGone } from "./caller-gone.ts";
import type { AroundApi } from "./around.ts";
import type { Caller } from "../access/caller.ts";
import { boundAnswers } from "./answer-budget.ts";
import { acceptBodies, type BodyLimits } from "./bodies.ts";
import { allowOriginOf, allowOrigins, type CorsOptions } from "./cors.ts";
import { answerUnknownRoute, answerUnreadable, createAnswerError } from "./errors.ts";
import type { CallerLimits } from "./limits/caller-limits.ts";
import { limitConnections, serverOptionsOf, type ConnectionLimits } from "./limits/connections.ts";
import { limitRequests } from "./limits/limit-requests.ts";
import { trackOpenAnswers } from "./open-answers.ts";
import { offerConfigurableHeaders } from "./header-choice.ts";
import { logRequests } from "./request-lines.ts";
import { nameMountPrefix, withoutPrefix } from "./mount-prefix.ts";
import type { HttpRules } from "../project/http.ts";
import { describeApi, type ApiSecurity } from "./openapi.ts";
import type { SiteCheck } from "./sites.ts";
import { validatorCompiler } from "./validation.ts";
import { answerBeforeClosing } from "./unanswered.ts";
import { acceptWebSockets } from "./websockets.ts";

export interface AppOptions {
  logger: Logger;
  authenticate: Authenticate;
  bodyLimits: BodyLimits;
  connectionLimits: ConnectionLimits;
  /** Undefined: nobody is limited. */
  callerLimits?: CallerLimits | undefined;
  /** Proxies whose `X-Forwarded-For` is believed. */
  trustedProxies?: readonly string[];
  cors: CorsOptions;
  /** Left out: it doesn't matter where callers come from. */
  siteCheck?: SiteCheck;
  /** Of answers that are large. */
  answerRoom: AnswerRoom;
  /** How clients authenticate, for the description of the API. */
  security?: ApiSecurity | undefined;
  routes: RoutePlugin[];
  /** `http` of langgraph.json. */
  rules?: HttpRules | undefined;
  /** An application of the project's own. */
  around?: AroundApi | undefined;
  /** Resolves when what clients have asked over WebSockets is answered; a server that stops waits a moment for it. */
  socketsSettled?: () => Promise<void>;
}

/** Characters of an id in a path: UUIDs have 36, graph ids are names. */
const PATH_PARAMETER_AT_MOST = 1_000;

/** Finds out who calls, once for each request; none is taken any more by a server that stops. */
const callerHook = (
  app: FastifyInstance,
  authenticate: Authenticate,
): ((request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void) => {
  let closing = false;
  app.addHook("preClose", (done) => {
    closing = true;
    done();
  });
  return (request, reply, done) => {
    try {
      if (closing) throw unavailable("This server is stopping; nothing was stored.");
      if ((request.caller as Caller | undefined) !== undefined) return done();
      const { method, url, headers } = request;
      const gone = (): AbortSignal => callerGone(reply.raw);
      const caller = authenticate({ method, url, headers, callerGone: gone });
      if (!(caller instanceof Promise)) {
        request.caller = caller;
        return done();
      }
      caller.then(
        (found) => {
          request.caller = found;
          done();
        },
        (error: unknown) => done(error as Error),
      );
    } catch (error) {
      done(error as Error);
    }
  };
};

/** Builds the HTTP application; it does not listen yet. */
export const createApp = async (options: AppOptions): Promise<FastifyInstance> => {
  const { rules } = options;
  const mountPrefix = rules?.mountPrefix ?? "";
  const rewriteUrl = withoutPrefix(mountPrefix);
  const answerError = createAnswerError();
  const { connectionLimits, trustedProxies = [] } = options;
  const app: FastifyInstance = Fastify({
    // Fastify's own news (it listens) would stand beside the line that main prints.
    loggerInstance: options.logger.child(
      {},
      { level: options.logger.level === "info" ? "warn" : options.logger.level },
    ) as FastifyBaseLogger,
    // A line per request would cost as much as answering it; a proxy in front logs requests.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: options.bodyLimits.bytes,
    http: serverOptionsOf(connectionLimits),
    requestTimeout: connectionLimits.requestMs,
    keepAliveTimeout: connectionLimits.keepAliveMs,
    ...(trustedProxies.length > 0 ? { trustProxy: [...trustedProxies] } : {}),
    genReqId: () => newId(),
    ...(rewriteUrl === undefined ? {} : { rewriteUrl }),
    // Streams are ended by the server itself before it closes; see events/transports/.
    forceCloseConnections: true,
    // Fastify's own answer while closing has another form than our errors; see the hook below.
    return503OnClosing: false,
    frameworkErrors(error, request, reply) {
      allowOriginOf(request, reply, options.cors);
      answerError(error, request, reply.header("x-request-id", request.id));
    },
    clientErrorHandler: answerUnreadable,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: PATH_PARAMETER_AT_MOST },
  });
  const openAnswers = trackOpenAnswers(app);
  limitConnections(app, openAnswers, connectionLimits);
  app.setValidatorCompiler(validatorCompiler);
  // Answers are built by the services, from the same types; the response schemas are documentation.
  app.setSerializerCompiler(() => (answer) => JSON.stringify(answer));
  app.setErrorHandler(answerError);
  app.setNotFoundHandler(answerUnknownRoute);

  nameMountPrefix(app, mountPrefix);
  offerConfigurableHeaders(app, rules?.configurableHeaders);
  logRequests(app, options.logger, rules?.loggingHeaders);
  const { siteCheck } = options;
  app.addHook("onRequest", (request, reply, done) => {
    reply.header("x-request-id", request.id);
    try {
      // Before the headers that let browsers read.
      siteCheck?.assertFromHere(request);
      done();
    } catch (error) {
      done(error as Error);
    }
  });
  await allowOrigins(app, options.cors);
  app.decorateRequest("caller", undefined as never);
  app.decorateRequest("isWrapped", false);
  const authenticate = callerHook(app, options.authenticate);
  const { around } = options;
  if (around !== undefined) {
    app.addHook("onRequest", (request, reply, done) =>
      around.authenticatesBefore(request) ? authenticate(request, reply, done) : done(),
    );
    around.install(app);
  }
  const budget = acceptBodies(app, options.bodyLimits);
  boundAnswers(app, options.answerRoom);
  app.addHook("onRequest", authenticate);
  answerBeforeClosing(app, openAnswers);
  // Its own heartbeat would end in a blank line; see events/transports/server-sent-events.ts.
  await app.register(fastifySSE, { heartbeatInterval: 0 });
  await acceptWebSockets(app, {
    bytesAtMost: options.bodyLimits.bytes,
    budget,
    settled: options.socketsSettled ?? (async () => undefined),
  });
  limitRequests(app, options.callerLimits);
  if (rules?.disabled.has("meta") !== true) await describeApi(app, mountPrefix, options.security);
  for (const routes of options.routes) await app.register(routes);
  await app.ready();
  return app;
};
