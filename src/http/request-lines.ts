import type { FastifyInstance, FastifyRequest } from "fastify";
import type { HeaderChoice } from "../graphs/project/headers.ts";
import { boundedText } from "../platform/lib/log-fields.ts";
import type { Logger } from "../platform/lib/logger.ts";
import { headerChooser, type ChosenHeaders } from "./header-choice.ts";
import { opennessOf } from "./open-routes.ts";

/** Characters of one header in a line. */
const VALUE_AT_MOST = 500;
const PATH_AT_MOST = 500;

/**
 * A line in the log for each request that was answered, with the headers that langgraph.json chooses for the log
 * (`http.logging_headers`). Without such a choice there are no lines: a proxy in front has them, and each costs as much as an
 * answer. The query is left out, since it may hold a key.
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
    // Probes ask every few seconds, and tell nothing.
    if (opennessOf(request) !== "probe") {
      const { method, originalUrl } = request;
      const path = boundedText(originalUrl.split("?")[0] ?? "", PATH_AT_MOST);
      const ms = Math.round(reply.elapsedTime);
      // Not `headers`, which is never written (platform/lib/logger.ts).
      const fields = { method, path, status: reply.statusCode, ms, request_headers: fieldsOf(request) };
      logger.info({ reqId: request.id, ...fields }, "a request was answered");
    }
    done();
  });
};
