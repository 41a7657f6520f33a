import type { FastifyInstance } from "fastify";
import { forbidden } from "../platform/domain/errors.ts";

/** Marks a webhook's request to the server that sends it. A client that sends the header is only refused itself. */
export const OWN_WEBHOOK_HEADER = "threadloom-own-webhook";

/**
 * The server's own requests bypass a proxy that checks access, and callers choose their paths. Routes of the project's
 * own application stay allowed.
 */
export const refuseOwnWebhooks = (app: FastifyInstance): void => {
  app.addHook("onRequest", (request, _reply, done) => {
    const isRefused = !request.is404 && request.headers[OWN_WEBHOOK_HEADER] !== undefined;
    done(isRefused ? forbidden("Webhooks may not name routes of the API here.") : undefined);
  });
};
