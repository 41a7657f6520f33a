import { z } from "zod";
import { errorAnswer } from "../../platform/domain/json-schemas.ts";
import { callerGone } from "../../http/caller-gone.ts";
import type { RoutePlugin } from "../../http/route-plugin.ts";
import { deliveryPath, deliverySearchBody, webhookDelivery } from "./schemas.ts";
import type { WebhookService } from "./service.ts";

const tags = ["Webhooks"];
const refusals = { 404: errorAnswer, 422: errorAnswer };

export const createWebhookRoutes =
  (service: WebhookService): RoutePlugin =>
  async (app) => {
    app.post(
      "/webhooks/deliveries/search",
      {
        config: { isRead: true },
        schema: {
          tags,
          summary: "Search deliveries of webhooks",
          description:
            "In the order in which their runs were created, the newest first unless `sort_order` is `asc`. `X-Pagination-Next` " +
            "is the next page's offset; it is missing on the last one.",
          body: deliverySearchBody,
          response: { 200: z.array(webhookDelivery), ...refusals },
        },
      },
      async (request, reply) => {
        const signal = callerGone(reply.raw);
        const { deliveries, next } = await service.search(request.caller, request.body, signal);
        if (next !== undefined) reply.header("x-pagination-next", next);
        return deliveries;
      },
    );

    app.get(
      "/webhooks/deliveries/:run_id",
      {
        schema: {
          tags,
          summary: "Get the delivery of a run's webhook",
          params: deliveryPath,
          response: { 200: webhookDelivery, ...refusals },
        },
      },
      async (request) => await service.get(request.caller, request.params.run_id),
    );

    app.post(
      "/webhooks/deliveries/:run_id/replay",
      {
        schema: {
          tags,
          summary: "Send a run's webhook again",
          description:
            "Sends it at once with the same id, whatever its state. Failures are retried as after the run's end.",
          params: deliveryPath,
          response: { 200: webhookDelivery, ...refusals },
        },
      },
      async (request) => await service.replay(request.caller, request.params.run_id),
    );
  };
