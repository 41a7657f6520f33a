import { z } from "zod";
import type { RoutePlugin } from "../../../http/route-plugin.ts";
import { errorAnswer } from "../../../platform/domain/json-schemas.ts";
import { NO_CONTENT } from "../json-answers.ts";
import * as schemas from "../schemas.ts";
import type { UpkeepService } from "./service.ts";

const tags = ["Threads"];

export const createUpkeepRoutes =
  (service: UpkeepService): RoutePlugin =>
  async (app) => {
    app.post(
      "/threads/prune",
      {
        schema: {
          tags,
          summary: "Delete threads or their old checkpoints",
          response: { 200: schemas.pruneAnswer, 422: errorAnswer },
          body: schemas.threadPruneBody,
        },
      },
      async (request) => ({ pruned_count: await service.prune(request.caller, request.body) }),
    );

    app.delete(
      "/threads/:thread_id",
      {
        schema: {
          tags,
          summary: "Delete a thread",
          response: { 204: z.null() },
          params: schemas.threadPath,
        },
      },
      async (request, reply) => {
        await service.delete(request.caller, request.params.thread_id);
        return reply.code(NO_CONTENT).send(null);
      },
    );

    app.get(
      "/threads/:thread_id/storage",
      {
        schema: {
          tags,
          summary: "Get the bytes that a thread occupies",
          response: { 200: schemas.storageAnswer },
          params: schemas.threadPath,
        },
      },
      async (request) => service.storage(request.caller, request.params.thread_id),
    );
  };
