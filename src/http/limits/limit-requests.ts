import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ANONYMOUS, type Caller } from "../../access/caller.ts";
import type { CallerLimits, Spent } from "./caller-limits.ts";
import type { CountedCaller, CountedRequest } from "./counted-callers.ts";
import { isLong, rateClassOf, type RateClass } from "./rate-classes.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** What a request counts as, where that does not follow from the route; null: nothing. */
    rate?: RateClass | null;
    /** Stays open for as long as a run may take. Whatever sends server-sent events does anyway. */
    waits?: boolean;
    /** Of `waits` and what sends events; set here. */
    isLong?: boolean;
  }
  interface FastifyRequest {
    /** Counts one more of a class, as for a command over a WebSocket. Throws `tooMany`. */
    spend(rate: RateClass): void;
    /** Was counted before an application around the API was asked. */
    isCounted: boolean;
    /** Counts more that this request asks for; it is not refused for that, but others after it are. */
    charge(rate: RateClass, amount: number): void;
    /** Counts one more that stays open, beside the request itself: what a WebSocket subscribes to. Throws `tooMany`. Answers what ends it. */
    openStream(): () => void;
  }
}

/** The names that proxies and SDKs know, of the draft of the IETF. */
const setBalanceHeaders = (reply: FastifyReply, { limit, remaining, resetSeconds }: Spent): void => {
  reply.header("ratelimit-limit", limit);
  reply.header("ratelimit-remaining", remaining);
  reply.header("ratelimit-reset", resetSeconds);
};

const holdOpen = (request: FastifyRequest, end: () => void): void => {
  // A WebSocket has no answer that would end.
  if (request.ws) request.socket.once("close", end);
  else request.whenClosed = end;
};

const spend = (
  limits: CallerLimits,
  request: CountedRequest,
  reply: FastifyReply,
  rate: RateClass,
): CountedCaller | undefined => {
  const caller = limits.counted(request);
  const spent = caller && limits.spend(caller, rate);
  if (caller !== undefined && spent !== undefined) {
    setBalanceHeaders(reply, spent);
    if (spent.isRefused) throw limits.refusalOf(caller, spent, rate);
  }
  return caller;
};

/**
 * The same for what only an application around the API can answer: such requests never come to what counts those to the API.
 * Register before the application's hooks. Who is not known by then counts by the address.
 */
export const limitOwnRoutes = (app: FastifyInstance, limits: CallerLimits | undefined): void => {
  if (limits === undefined) return;
  app.addHook("onRequest", (request, reply, done) => {
    if (!request.is404 || request.method === "OPTIONS") return done();
    try {
      const caller = (request.caller as Caller | undefined) ?? ANONYMOUS;
      const isRead = request.method === "GET" || request.method === "HEAD";
      spend(limits, { caller, ip: request.ip }, reply, isRead ? "reads" : "writes");
      request.isCounted = true;
      done();
    } catch (error) {
      done(error as Error);
    }
  });
};

/**
 * Refuses requests of those who ask too often, or have too much open, before a body is read. Register when it is known who
 * calls, and before the routes. `limits` undefined: nobody is limited.
 */
export const limitRequests = (app: FastifyInstance, limits: CallerLimits | undefined): void => {
  app.decorateRequest("spend", function spend(rate) {
    const caller = limits?.counted(this);
    const spent = caller && limits?.spend(caller, rate);
    if (caller !== undefined && spent?.isRefused) throw limits!.refusalOf(caller, spent, rate);
  });
  app.decorateRequest("charge", function charge(rate, amount) {
    const caller = limits?.counted(this);
    if (caller !== undefined) limits?.charge(caller, rate, amount);
  });
  app.decorateRequest("openStream", function openStream() {
    return limits?.openStream(limits.counted(this)) ?? (() => undefined);
  });
  if (limits === undefined) return;
  app.addHook("onRoute", (route) => {
    route.config = { ...route.config, rate: rateClassOf(route), isLong: isLong(route) };
  });
  app.addHook("onRequest", (request, reply, done) => {
    // Of no route, as of a path that is not there: a read.
    const { rate = "reads", isLong: staysOpen = false } = request.routeOptions.config;
    if (rate === null || request.isCounted) return done();
    try {
      const caller = spend(limits, request, reply, rate);
      if (staysOpen) holdOpen(request, limits.openStream(caller));
      done();
    } catch (error) {
      done(error as Error);
    }
  });
  app.server.on("drop", () => limits.noteDroppedConnection());
};
