import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { once } from "node:events";
import type { Caller } from "../../access/caller.ts";
import { callerGone } from "../../http/caller-gone.ts";
import type { AroundApi } from "../../http/route-plugin.ts";
import { answerUnknownRoute } from "../../http/errors.ts";
import { isOutside } from "../../http/mount-prefix.ts";
import { opennessOf } from "../../http/open-routes.ts";
import type { HttpRules } from "../../graphs/project/http.ts";
import { tooLarge, CallerGoneError } from "../../platform/domain/errors.ts";
import type { CustomApp } from "./application.ts";
import type { AppAuth } from "./environment.ts";
import {
  adoptHeaders,
  toWebRequest,
  type WebRequest,
  adoptHead,
  bodyOf,
  asResponse,
  flushSoon,
  toApiResponse,
} from "./messages.ts";
import type { Readable } from "node:stream";

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
          proceed(given, { hasOtherBody }) {
            const { pathname } = new URL(given.url);
            if (given.method !== asked.method || pathname !== new URL(asked.url).pathname)
              throw new Error("an application can't change the method or the path of a request to the API");
            adoptHeaders(request.raw, given);
            // Fastify compares the length of the body with this header.
            if (hasOtherBody) {
              delete request.raw.headers["content-length"];
              request.raw.headers["transfer-encoding"] = "chunked";
            }
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

interface ExchangeParts {
  web: WebRequest;
  reply: FastifyReply;
  ask(api: (given: Request) => Promise<Response>): Promise<unknown>;
  /** The API has this route, so a 404 of an application without `api` goes on to the API. */
  passesOn404: boolean;
  /** Throws if that is impossible. */
  proceed(given: Request, options: { hasOtherBody: boolean }): void;
  answer(response: Response): void;
  fail(error: unknown): void;
}

interface Promised<Value> {
  promise: Promise<Value>;
  resolve(value: Value): void;
  reject(error: unknown): void;
}

const aPromised = <Value>(): Promised<Value> => {
  let settle: Pick<Promised<Value>, "resolve" | "reject"> | undefined;
  const promise = new Promise<Value>((resolve, reject) => (settle = { resolve, reject }));
  return { promise, ...settle! };
};

/** Per response. More would be a leak. */
const LISTENERS_AT_MOST = 20;

/**
 * One request through the application and the API. The application runs first; if it calls `api()`, Fastify continues,
 * `onSend` gives the API's response to the application, and the application's response is sent:
 *
 *     application ──▶ api() ──▶ hooks and handler of the route ──▶ onSend ──▶ application ──▶ sent
 *          └── answers by itself ──▶ sent
 */
export const createExchange = (parts: ExchangeParts) => {
  const { web, reply, ask, passesOn404, proceed, answer, fail } = parts;
  const toApplication = aPromised<Response>();
  const fromApplication = aPromised<Response>();
  // A rejection without an awaiting reader is irrelevant.
  toApplication.promise.catch(() => undefined);
  fromApplication.promise.catch(() => undefined);
  let body: Readable | undefined;
  let isAsked = false;
  let isAnswered = false;
  let isPassedOn = false;

  const goOn = (given: Request): void => {
    isAsked = true;
    body = web.bodyForApi(given);
    proceed(given, { hasOtherBody: body !== undefined });
  };
  // A long response has a dozen listeners for its end; Node warns above ten.
  reply.raw.setMaxListeners(LISTENERS_AT_MOST);
  reply.raw.once("close", () => {
    toApplication.reject(new CallerGoneError());
    fromApplication.reject(new CallerGoneError());
    web.release();
  });

  return {
    /** The body for the API; undefined: Node's own request. */
    get body(): Readable | undefined {
      return body;
    },
    async api(given: Request): Promise<Response> {
      if (isAsked || isAnswered) throw new Error("the API can be asked once for each request");
      goOn(given);
      return await toApplication.promise;
    },
    async run(): Promise<void> {
      try {
        const response = asResponse(await ask(this.api));
        if (isAsked) return fromApplication.resolve(response);
        if (passesOn404 && response.status === 404) {
          response.body?.cancel().catch(() => undefined);
          isPassedOn = true;
          return goOn(web.request);
        }
        isAnswered = true;
        answer(response);
      } catch (error) {
        if (isAsked) return fromApplication.reject(error);
        isAnswered = true;
        fail(error);
      }
    },
    /** Replaces the API's payload by the application's, once. */
    async onSend(payload: unknown): Promise<unknown> {
      if (!isAsked || isAnswered) return payload;
      isAnswered = true;
      if (isPassedOn) {
        if (isStream(payload)) flushSoon(reply);
        return payload;
      }
      const made = toApiResponse(reply, payload as Parameters<typeof toApiResponse>[1]);
      toApplication.resolve(made.response);
      const response = await fromApplication.promise.catch((error: unknown) => {
        made.discard();
        throw error;
      });
      adoptHead(reply, response, { adds: false });
      if (made.isOwn(response.body)) {
        if (isStream(payload)) flushSoon(reply);
        return payload;
      }
      made.discard();
      reply.removeHeader("content-length");
      return bodyOf(reply, response);
    },
  };
};

export type Exchange = ReturnType<typeof createExchange>;

const isStream = (payload: unknown): boolean =>
  typeof payload === "object" && payload !== null && "pipe" in payload;
