import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

declare module "fastify" {
  interface FastifyRequest {
    /** Called when the response has closed. Avoids a listener per route. */
    whenClosed: (() => void) | null;
  }
}

/** Responses that have not closed, with their requests. */
export type OpenAnswers = ReadonlyMap<FastifyReply["raw"], FastifyRequest>;

/** Tracks open responses. Register before any hook that may refuse a request. */
export const trackOpenAnswers = (app: FastifyInstance): OpenAnswers => {
  app.decorateRequest("whenClosed", null);
  const open = new Map<FastifyReply["raw"], FastifyRequest>();
  app.addHook("onRequest", (request, { raw }, done) => {
    open.set(raw, request);
    raw.once("close", () => {
      open.delete(raw);
      request.whenClosed?.();
    });
    done();
  });
  return open;
};
