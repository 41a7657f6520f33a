import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { CallerLimits, Spent } from "./caller-limits.ts";
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
    /** Counts more that this request asks for; it is not refused for that, but others after it are. */
    charge(rate: RateClass, amount: number): void;
  }
}

/** The names that proxies and SDKs know, of the draft of the IETF. */
const tellBalance = (reply: FastifyReply, { limit, remaining, resetSeconds }: Spent): void => {
  reply.header("ratelimit-limit", limit);
  reply.header("ratelimit-remaining", remaining);
  reply.header("ratelimit-reset", resetSeconds);
};

const holdOpen = (request: FastifyRequest, end: () => void): void => {
  // A WebSocket has no answer that would end.
  if (request.ws) request.socket.once("close", end);
  else request.whenClosed = end;
};

/**
 * Refuses requests of those who ask too often, or have too much open, before a body is read. Register when it is known who
 * calls, and before the routes. `limits` undefined: nobody is limited.
 */
export const limitRequests = (app: FastifyInstance, limits: CallerLimits | undefined): void => {
  app.decorateRequest("spend", function spend(rate) {
    const caller = limits?.counted(this);
    const spent = caller && limits?.spend(caller, rate);
    if (spent?.isRefused) throw limits!.refusalOf(spent, rate);
  });
  app.decorateRequest("charge", function charge(rate, amount) {
    const caller = limits?.counted(this);
    if (caller !== undefined) limits?.charge(caller, rate, amount);
  });
  if (limits === undefined) return;
  app.addHook("onRoute", (route) => {
    route.config = { ...route.config, rate: rateClassOf(route), isLong: isLong(route) };
  });
  app.addHook("onRequest", (request, reply, done) => {
    // Of no route, as of a path that is not there: a read.
    const { rate = "reads", isLong: staysOpen = false } = request.routeOptions.config;
    if (rate === null) return done();
    try {
      const caller = limits.counted(request);
      const spent = caller && limits.spend(caller, rate);
      if (spent !== undefined) {
        tellBalance(reply, spent);
        if (spent.isRefused) throw limits.refusalOf(spent, rate);
      }
      if (staysOpen) holdOpen(request, limits.openStream(caller));
      done();
    } catch (error) {
      done(error as Error);
    }
  });
  app.server.on("drop", () => limits.noteDroppedConnection());
};
