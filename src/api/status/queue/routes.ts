import { errorAnswer } from "../../../platform/domain/json-schemas.ts";
import { callerGone } from "../../../http/caller-gone.ts";
import type { RoutePlugin } from "../../../http/route-plugin.ts";
import { queueRecord } from "./schemas.ts";
import type { QueueService } from "./service.ts";

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
