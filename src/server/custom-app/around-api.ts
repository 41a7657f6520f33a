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

/** Fastify would take a rejection with nothing for a request that may go on. */
const faultOf = (error: unknown): Error =>
  (error || new Error("the application of http.app threw nothing")) as Error;

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
        const onFault = (error: unknown): void => done(faultOf(error));
        let web: WebRequest | undefined;
        try {
          web = toWebRequest(request, callerGone(reply.raw), bytesAtMost);
        } catch (error) {
          return onFault(error);
        }
        if (web === undefined) return answerUnknownRoute(request, reply);
        if (isUpgrade(request)) {
          askForSocket(request, reply, web).then((isLetIn) => {
            if (isLetIn) done();
          }, onFault);
          return;
        }
        request.isWrapped = true;
        const exchange = new Exchange(customApp, web, request, reply, (error) =>
          done(error !== undefined && web.isTooLarge ? tooLarge(bytesAtMost) : (error as Error | undefined)),
        );
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
          (error: unknown) => done(faultOf(error)),
        );
      });
    },
  };
};

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
class Exchange {
  /** The body for the API; undefined: Node's own request. */
  body: Readable | undefined;
  readonly #toApplication = aPromised<Response>();
  readonly #fromApplication = aPromised<Response>();
  #isAsked = false;
  #isAnswered = false;
  #isPassedOn = false;

  /** @param proceed lets Fastify continue, or fail */
  constructor(
    private readonly customApp: CustomApp,
    private readonly web: WebRequest,
    private readonly request: FastifyRequest,
    private readonly reply: FastifyReply,
    private readonly proceed: (error?: unknown) => void,
  ) {
    // A rejection without an awaiting reader is irrelevant.
    this.#toApplication.promise.catch(() => undefined);
    this.#fromApplication.promise.catch(() => undefined);
    // A long response has a dozen listeners for its end; Node warns above ten.
    reply.raw.setMaxListeners(LISTENERS_AT_MOST);
    reply.raw.once("close", () => {
      this.#toApplication.reject(new CallerGoneError());
      this.#fromApplication.reject(new CallerGoneError());
      web.release();
    });
  }

  async run(): Promise<void> {
    const { customApp, request, reply, web } = this;
    try {
      const api = async (given: Request): Promise<Response> => {
        if (this.#isAsked || this.#isAnswered) throw new Error("the API can be asked once for each request");
        this.#ask(given);
        return await this.#toApplication.promise;
      };
      const environment = { incoming: request.raw, auth: authOf(request.caller), api };
      const response = asResponse(await customApp.fetch(web.request, environment));
      if (this.#isAsked) return this.#fromApplication.resolve(response);
      // The API has this route.
      if (response.status === 404 && !customApp.callsApi && !request.is404) {
        response.body?.cancel().catch(() => undefined);
        this.#isPassedOn = true;
        return this.#ask(web.request);
      }
      this.#isAnswered = true;
      adoptHead(reply, response, { adds: true });
      reply.send(bodyOf(reply, response));
    } catch (error) {
      if (this.#isAsked) return this.#fromApplication.reject(error);
      this.#isAnswered = true;
      this.proceed(faultOf(error));
    }
  }

  #ask(given: Request): void {
    const { raw } = this.request;
    const { method, url } = this.web.request;
    if (given.method !== method || new URL(given.url).pathname !== new URL(url).pathname)
      throw new Error("an application can't change the method or the path of a request to the API");
    this.#isAsked = true;
    this.body = this.web.bodyForApi(given);
    adoptHeaders(raw, given);
    // Fastify compares the length of the body with this header.
    if (this.body !== undefined) {
      delete raw.headers["content-length"];
      raw.headers["transfer-encoding"] = "chunked";
    }
    this.proceed();
  }

  /** Replaces the API's payload by the application's, once. */
  async onSend(payload: unknown): Promise<unknown> {
    const { reply } = this;
    if (!this.#isAsked || this.#isAnswered) return payload;
    this.#isAnswered = true;
    if (this.#isPassedOn) {
      if (isStream(payload)) flushSoon(reply);
      return payload;
    }
    const made = toApiResponse(reply, payload as Parameters<typeof toApiResponse>[1]);
    this.#toApplication.resolve(made.response);
    const response = await this.#fromApplication.promise.catch((error: unknown) => {
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
  }
}

const isStream = (payload: unknown): boolean =>
  typeof payload === "object" && payload !== null && "pipe" in payload;
