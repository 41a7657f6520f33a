import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

declare module "fastify" {
  interface FastifyRequest {
    /** Called when the response has closed, which avoids a listener per route. */
    whenClosed: (() => void) | null;
  }
}

export type OpenAnswers = ReadonlyMap<FastifyReply["raw"], FastifyRequest>;

/** Register before any hook that may refuse a request. */
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
