import { context, propagation, SpanKind, SpanStatusCode, trace, type Context } from "@opentelemetry/api";
import type { FastifyInstance } from "fastify";
import { ATTRIBUTES, SPANS } from "../platform/telemetry/names.ts";
import { tracer } from "../platform/telemetry/telemetry.ts";
import { opennessOf } from "./open-routes.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** With the span of the request; null: not traced. */
    traceContext: Context | null;
  }
}

/** Statuses from here on are ours. */
const FAULT = 500;
const PATH_AT_MOST = 500;

/**
 * A span of OpenTelemetry for each request except probes, until its answer has closed. The query is left out, because it may
 * hold a key. If the project's SDK traces Node's own server, its span is taken.
 */
export const traceRequests = (app: FastifyInstance): void => {
  app.decorateRequest("traceContext", null);
  app.addHook("onRequest", (request, { raw }, done) => {
    if (opennessOf(request) === "probe") return done();
    const active = context.active();
    if (trace.getSpan(active) !== undefined) {
      request.traceContext = active;
      return done();
    }
    const { method, originalUrl, headers } = request;
    const route = request.is404 ? "unknown" : (request.routeOptions.url ?? "unknown");
    const parent = propagation.extract(active, headers);
    const attributes = {
      [ATTRIBUTES.method]: method,
      [ATTRIBUTES.route]: route,
      [ATTRIBUTES.path]: (originalUrl.split("?", 1)[0] ?? "").slice(0, PATH_AT_MOST),
      [ATTRIBUTES.requestId]: request.id,
    };
    const kind = SpanKind.SERVER;
    const span = tracer().startSpan(SPANS.request(method, route), { kind, attributes }, parent);
    raw.once("close", () => {
      if (raw.headersSent) span.setAttribute(ATTRIBUTES.statusCode, raw.statusCode);
      if (raw.statusCode >= FAULT) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    });
    request.traceContext = trace.setSpan(parent, span);
    context.with(request.traceContext, done);
  });
  // A body arrives in the events of its socket, outside the context.
  app.addHook("preValidation", (request, _reply, done) => {
    if (request.traceContext === null) done();
    else context.with(request.traceContext, done);
  });
};
