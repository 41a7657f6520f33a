import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

declare module "fastify" {
  interface FastifyRequest {
    /** Called when the answer was sent or its connection has closed: a listener less than one of its own. */
    whenClosed: (() => void) | null;
  }
}

/** Answers that have not been sent to their end, with their requests. */
export type OpenAnswers = ReadonlyMap<FastifyReply["raw"], FastifyRequest>;

/** Knows which answers are on their way. Register before whatever may refuse a request. */
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
