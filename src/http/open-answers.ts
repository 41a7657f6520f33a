import type { RequestFigures } from "../platform/metrics/figures.ts";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

declare module "fastify" {
  interface FastifyRequest {
    /** Called when the response has closed, which avoids a listener per route. */
    whenClosed: (() => void) | null;
  }
}

export type OpenAnswers = ReadonlyMap<FastifyReply["raw"], FastifyRequest>;

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
