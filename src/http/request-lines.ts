import type { FastifyInstance, FastifyRequest } from "fastify";
import type { HeaderChoice } from "../graphs/project/headers.ts";
import { boundedText } from "../platform/lib/log-fields.ts";
import type { Logger } from "../platform/lib/logger.ts";
import { headerChooser, type ChosenHeaders } from "./header-choice.ts";
import { opennessOf } from "./open-routes.ts";

/** In characters. */
const VALUE_AT_MOST = 500;
const PATH_AT_MOST = 500;

/**
 * Logs nothing without `http.logging_headers`, because a line costs as much as an answer. Omits the query, which may
 * hold a key.
 */
export const logRequests = (app: FastifyInstance, logger: Logger, choice: HeaderChoice | undefined): void => {
  const choose = headerChooser(choice, undefined);
  if (choose === undefined) return;
  const fieldsOf = (request: FastifyRequest): ChosenHeaders | undefined => {
    const chosen = choose(request.raw.headers);
    if (chosen === undefined) return undefined;
    return Object.fromEntries(
      Object.entries(chosen).map(([name, value]) => [name, boundedText(value, VALUE_AT_MOST)]),
    );
  };
  app.addHook("onResponse", (request, reply, done) => {
    // Probes come every few seconds.
    if (opennessOf(request) !== "probe") {
      const { method, originalUrl } = request;
      const path = boundedText(originalUrl.split("?")[0] ?? "", PATH_AT_MOST);
      const ms = Math.round(reply.elapsedTime);
      // Not `headers`, which the logger removes (platform/lib/logger.ts).
      const fields = { method, path, status: reply.statusCode, ms, request_headers: fieldsOf(request) };
      logger.info({ reqId: request.id, ...fields }, "a request was answered");
    }
    done();
  });
};
