import type { FastifyInstance } from "fastify";
import { forbidden } from "../platform/domain/errors.ts";

/** Of a webhook's request to a route of the server that sends it. Whoever else says it of his own is refused, no more. */
export const OWN_WEBHOOK_HEADER = "threadloom-own-webhook";

/**
 * Refuses webhooks that name a route of the API. Where something in front of the server checks access, the server's own
 * requests go round it, and callers choose their paths. Routes of the project's own application stay.
 */
export const refuseOwnWebhooks = (app: FastifyInstance): void => {
  app.addHook("onRequest", (request, _reply, done) => {
    const isRefused = !request.is404 && request.headers[OWN_WEBHOOK_HEADER] !== undefined;
    done(isRefused ? forbidden("Webhooks may not name routes of the API here.") : undefined);
  });
};
