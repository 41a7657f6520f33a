import { z } from "zod";
import { forbidden } from "../../platform/domain/errors.ts";
import { errorAnswer } from "../../platform/domain/json-schemas.ts";
import type { RoutePlugin } from "../../http/route-plugin.ts";
import { health, healthQuery, metricsQuery, queueRecord, serverInfo, type Metrics } from "./schemas.ts";
import type { QueueService, StatusService } from "./service.ts";
import { callerGone } from "../../http/caller-gone.ts";

const tags = ["System"];
const PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Needs no key, for probes. */
const healthRoutes =
  (service: StatusService): RoutePlugin =>
  async (app) => {
    app.get(
      "/ok",
      {
        config: { rate: null },
        schema: {
          tags,
          summary: "Check whether this server may get requests",
          security: [],
          querystring: healthQuery,
          response: { 200: health, 503: errorAnswer },
        },
      },
      async (request) => {
        await service.assertHealthy({ checkDatabase: request.query.check_db ?? false });
        return { ok: true as const };
      },
    );
  };

const metaRoutes =
  (service: StatusService): RoutePlugin =>
  async (app) => {
    app.get(
      "/info",
      {
        schema: {
          tags,
          summary: "Get the versions and abilities of the server",
          security: [],
          response: { 200: serverInfo },
        },
      },
      () => service.info(),
    );

    app.get(
      "/metrics",
      {
        schema: {
          tags,
          summary: "Get the metrics of this process",
          querystring: metricsQuery,
          response: {
            200: {
              description: "Metrics",
              content: {
                "text/plain": { schema: z.string() },
                "application/json": { schema: z.custom<Metrics>().meta({ type: "object" }) },
              },
            },
          },
        },
      },
      async (request, reply) => {
        // The figures count all users' data; no handler's filter can apply.
        if (request.caller.kind === "user")
          throw forbidden("The figures of this server count what everybody has: they need an API key.");
        if (request.query.format === "json") return await reply.send(await service.metrics());
        return await reply.type(PROMETHEUS_TYPE).send(await service.prometheus());
      },
    );
  };

export const createStatusRoutes =
  (service: StatusService, { meta = true }: { meta?: boolean } = {}): RoutePlugin =>
  async (app) => {
    await app.register(healthRoutes(service));
    if (meta) await app.register(metaRoutes(service));
  };

export const createQueueRoutes =
  (service: QueueService): RoutePlugin =>
  async (app) => {
    app.get(
      "/queue",
      {
        config: { rate: "searches" },
        schema: {
          tags: ["System"],
          summary: "Get pending and running runs by graph, thread and server",
          description:
            "Covers all servers that share the database. Needs an API key: users of an `Auth` get 403.",
          response: { 200: queueRecord, 403: errorAnswer, 422: errorAnswer },
        },
      },
      async (request, reply) => await service.read(request.caller, callerGone(reply.raw)),
    );
  };
