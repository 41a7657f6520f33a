import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { once } from "node:events";
import type { Caller } from "../../access/caller.ts";
import { callerGone } from "../../http/caller-gone.ts";
import type { AroundApi } from "../../http/around.ts";
import { answerUnknownRoute } from "../../http/errors.ts";
import { isOutside } from "../../http/mount-prefix.ts";
import { opennessOf } from "../../http/open-routes.ts";
import type { HttpRules } from "../../graphs/project/http.ts";
import { tooLarge } from "../../platform/domain/errors.ts";
import { createExchange, type Exchange } from "./exchange.ts";
import type { AppAuth } from "./environment.ts";
import type { CustomApp } from "./loading.ts";
import { adoptHeaders, toWebRequest, type WebRequest } from "./requests.ts";
import { adoptHead, bodyOf } from "./responses.ts";

/** Web requests can't have these methods. */
const OTHER_METHODS = new Set(["CONNECT", "TRACE", "TRACK"]);

const authOf = (caller: Caller | undefined): AppAuth | undefined => {
  if (caller?.kind === "user")
    return {
      user: { ...caller.user, identity: caller.identity, permissions: caller.permissions },
      scopes: caller.permissions,
    };
  if (caller?.kind === "key") {
    const { id, scopes } = caller;
    const user = { kind: "key", identity: id, display_name: id, is_authenticated: true, permissions: scopes };
    return { user, scopes };
  }
  return undefined;
};

const isUpgrade = ({ headers }: FastifyRequest): boolean => headers.upgrade?.toLowerCase() === "websocket";

/** See exchange.ts. */
export const putAroundApi = (
  customApp: CustomApp,
  { authFirst, customRouteAuth }: Pick<HttpRules, "authFirst" | "customRouteAuth">,
  bytesAtMost: number,
): AroundApi => {
  const exchanges = new WeakMap<FastifyRequest, Exchange>();

  /** Unauthenticated requests skip an application that requires authentication. */
  const passing = new WeakSet<FastifyRequest>();

  const concerns = (request: FastifyRequest): boolean =>
    !isOutside(request) && opennessOf(request) !== "probe" && !OTHER_METHODS.has(request.method);

  /** The application can refuse a WebSocket, but not handle it. */
  const askForSocket = async (
    request: FastifyRequest,
    reply: FastifyReply,
    web: WebRequest,
  ): Promise<boolean> => {
    let given: Request | undefined;
    const environment = {
      incoming: request.raw,
      auth: authOf(request.caller),
      async api(asked: Request) {
        given = asked;
        return new Response(null, { status: 204 });
      },
    };
    const response = (await customApp.fetch(web.request, environment)) as Response;
    const isLetIn = given === undefined ? !customApp.callsApi && response.status === 404 : response.ok;
    if (isLetIn) {
      adoptHeaders(request.raw, given ?? web.request);
      return true;
    }
    adoptHead(reply, response, { adds: true });
    if (response.status < 400) reply.code(403);
    reply.send(bodyOf(reply, response));
    return false;
  };

  return {
    authenticatesBefore(request) {
      if (!concerns(request)) return undefined;
      if (customRouteAuth) return "for itself";
      return authFirst && !request.is404 ? "as the API does" : undefined;
    },
    passBy(request) {
      passing.add(request);
    },

    install(app: FastifyInstance): void {
      // These handlers end when everything is written, but the application may not have answered yet.
      app.addHook("onRoute", (route) => {
        if (route.sse === undefined) return;
        const { handler } = route;
        route.handler = async function untilSent(request, reply) {
          const answer: unknown = await handler.call(this, request, reply);
          if (answer === undefined && exchanges.has(request) && !reply.raw.closed)
            await once(reply.raw, "close");
          return answer;
        };
      });
      app.addHook("onRequest", (request, reply, done) => {
        if (!concerns(request) || passing.has(request)) return done();
        const onFault = (error: unknown): void => done(error as Error);
        let web: WebRequest | undefined;
        try {
          web = toWebRequest(request, callerGone(reply.raw), bytesAtMost);
        } catch (error) {
          return onFault(error);
        }
        if (web === undefined) return answerUnknownRoute(request, reply);
        const { request: asked } = web;
        if (isUpgrade(request)) {
          askForSocket(request, reply, web).then((isLetIn) => {
            if (isLetIn) done();
          }, onFault);
          return;
        }
        request.isWrapped = true;
        const exchange = createExchange({
          web,
          reply,
          ask: (api) => customApp.fetch(asked, { incoming: request.raw, auth: authOf(request.caller), api }),
          passesOn404: !customApp.callsApi && !request.is404,
          proceed(given) {
            const { pathname } = new URL(given.url);
            if (given.method !== asked.method || pathname !== new URL(asked.url).pathname)
              throw new Error("an application can't change the method or the path of a request to the API");
            adoptHeaders(request.raw, given);
            done();
          },
          answer(response) {
            adoptHead(reply, response, { adds: true });
            reply.send(bodyOf(reply, response));
          },
          fail: (error) => onFault(web.isTooLarge ? tooLarge(bytesAtMost) : error),
        });
        exchanges.set(request, exchange);
        void exchange.run();
      });
      app.addHook("preParsing", (request, _reply, payload, done) => {
        done(null, exchanges.get(request)?.body ?? payload);
      });
      app.addHook("onSend", (request, _reply, payload, done) => {
        const exchange = exchanges.get(request);
        if (exchange === undefined) return done(null, payload);
        exchange.onSend(payload).then(
          (sent) => done(null, sent),
          (error: unknown) => done(error as Error),
        );
      });
    },
  };
};
