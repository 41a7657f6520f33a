import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ANONYMOUS, type Caller } from "../../access/caller.ts";
import {
  isLong,
  rateClassOf,
  type CallerLimits,
  type CountedCaller,
  type CountedRequest,
  type RateClass,
  type Spent,
} from "./caller-limits.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** The rate class, if it does not follow from the route. Null: not counted. */
    rate?: RateClass | null;
    /** May stay open as long as a run. Routes that send server-sent events need not set it. */
    waits?: boolean;
    /** Derived from `waits` and `sse`; set here. */
    isLong?: boolean;
  }
  interface FastifyRequest {
    /** Counts one more request of a class, such as a command over a WebSocket. Throws `tooMany`. */
    spend(rate: RateClass): void;
    /** The request was counted before an application around the API was called. */
    isCounted: boolean;
    /** Counts work of an accepted request. Never refuses this request, but maybe later ones. */
    charge(rate: RateClass, amount: number): void;
    /** For example a subscription over a WebSocket. The returned function ends the stream; throws `tooMany`. */
    openStream(): () => void;
  }
}

/** The names of the IETF draft, which proxies and SDKs know. */
const setBalanceHeaders = (reply: FastifyReply, { limit, remaining, resetSeconds }: Spent): void => {
  reply.header("ratelimit-limit", limit);
  reply.header("ratelimit-remaining", remaining);
  reply.header("ratelimit-reset", resetSeconds);
};

const holdOpen = (request: FastifyRequest, end: () => void): void => {
  // A WebSocket has no response that closes.
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
 * These requests never reach `limitRequests`. Register before the application's hooks; callers not yet authenticated
 * count by address.
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
 * Refuses before bodies are read; undefined `limits`: no limits. Register after authentication and before the routes.
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
    // A path without a route counts as a read.
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
