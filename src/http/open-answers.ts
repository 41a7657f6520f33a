import type { RequestFigures } from "../platform/metrics/metrics.ts";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { setTimeout as pause } from "node:timers/promises";
import type { ServerOptions, ServerResponse } from "node:http";

declare module "fastify" {
  interface FastifyRequest {
    /** Called when the response has closed, which avoids a listener per route. */
    whenClosed: (() => void) | null;
  }
}

type OpenAnswers = ReadonlyMap<FastifyReply["raw"], FastifyRequest>;

const UNKNOWN_ROUTE = "unknown";
const MS_PER_SECOND = 1_000;

const figuresOf = (request: FastifyRequest, raw: FastifyReply["raw"], begunAt: number): RequestFigures => {
  const { url = UNKNOWN_ROUTE, config } = request.routeOptions;
  return {
    method: request.method,
    route: request.is404 ? UNKNOWN_ROUTE : url,
    status: raw.headersSent ? raw.statusCode : undefined,
    seconds: (performance.now() - begunAt) / MS_PER_SECOND,
    isLong: config.isLong === true,
  };
};

/**
 * Register before any hook that may refuse a request. `onClosed`: for each answer that has ended, also by its client;
 * an accepted WebSocket is no answer.
 */
export const trackOpenAnswers = (
  app: FastifyInstance,
  onClosed?: (figures: RequestFigures) => void,
): OpenAnswers => {
  app.decorateRequest("whenClosed", null);
  const open = new Map<FastifyReply["raw"], FastifyRequest>();
  app.addHook("onRequest", (request, { raw }, done) => {
    open.set(raw, request);
    const begunAt = performance.now();
    raw.once("close", () => {
      open.delete(raw);
      onClosed?.(figuresOf(request, raw, begunAt));
      request.whenClosed?.();
    });
    done();
  });
  return open;
};

/** Accepted requests get this time when the server stops. Requests that do not wait for a run take milliseconds. */
const ANSWERING_MS = 1_000;
const POLL_EVERY_MS = 10;

/**
 * Delays closing until accepted requests are answered, because SDKs up to 1.12 repeat a request whose connection ends.
 * Does not wait for begun answers (streams); register before hooks that close connections.
 */
export const answerBeforeClosing = (app: FastifyInstance, open: OpenAnswers): void => {
  const isSomeUnanswered = (): boolean =>
    [...open].some(([response, { ws }]) => !ws && !response.headersSent && !response.destroyed);
  app.addHook("preClose", async () => {
    const until = performance.now() + ANSWERING_MS;
    while (isSomeUnanswered() && performance.now() < until) await pause(POLL_EVERY_MS);
  });
};

export interface ConnectionLimits {
  atMost: number;
  /** For the headers of a request, and for a new connection until they arrive. */
  headersMs: number;
  /** For a whole request. */
  requestMs: number;
  /** Between two requests. */
  keepAliveMs: number;
  /** For a client to read a small answer. Large answers have their own time-out (large-answers.ts). */
  answerTakenMs?: number;
}

/** With Node's default of 30 s, 145 of 1,000 slow connections were still open after 83 s. */
const CHECKED_EVERY_MS = 2_000;
const ANSWER_TAKEN_MS = 60_000;

export const serverOptionsOf = ({ headersMs, requestMs }: ConnectionLimits): ServerOptions => ({
  headersTimeout: headersMs,
  requestTimeout: requestMs,
  connectionsCheckingInterval: Math.min(CHECKED_EVERY_MS, headersMs),
});

/**
 * Closes connections of clients that do not read: unread answers and later requests stay in memory. Streams and large
 * answers have their own time-outs.
 */
export const limitConnections = (
  app: FastifyInstance,
  open: OpenAnswers,
  { atMost, answerTakenMs = ANSWER_TAKEN_MS }: ConnectionLimits,
): void => {
  app.server.maxConnections = atMost;
  const completeSince = new WeakMap<ServerResponse, number>();
  const timer = setInterval(
    () => {
      const now = performance.now();
      for (const [response, { ws }] of open) {
        if (ws || !response.writableEnded) continue;
        const since = completeSince.get(response);
        if (since === undefined) completeSince.set(response, now);
        else if (now - since > answerTakenMs) response.destroy();
      }
    },
    Math.min(answerTakenMs / 2, CHECKED_EVERY_MS * 5),
  );
  timer.unref();
  app.addHook("onClose", (_app, done) => {
    clearInterval(timer);
    done();
  });
};
