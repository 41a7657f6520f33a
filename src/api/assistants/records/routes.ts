import { z } from "zod";
import { errorAnswer } from "../../../platform/domain/json-schemas.ts";
import type { RoutePlugin } from "../../../http/route-plugin.ts";
import { invalid, notFound, tags } from "../answers.ts";
import { assistantCreateBody, assistantPath, assistantRecord, deleteQuery } from "../schemas.ts";
import type { RecordService } from "./service.ts";

export const createRecordRoutes =
  (service: RecordService): RoutePlugin =>
  async (app) => {
    app.post(
      "/assistants",
      {
        schema: {
          tags,
          summary: "Create an assistant with version 1",
          body: assistantCreateBody,
          response: { 200: assistantRecord, ...notFound, 409: errorAnswer, ...invalid },
        },
      },
      async (request) => await service.create(request.caller, request.body),
    );

    app.get(
      "/assistants/:assistant_id",
      {
        schema: {
          tags,
          summary: "Get an assistant",
          params: assistantPath,
          response: { 200: assistantRecord, ...notFound },
        },
      },
      async (request) => await service.get(request.caller, request.params.assistant_id),
    );

    app.delete(
      "/assistants/:assistant_id",
      {
        schema: {
          tags,
          summary: "Delete an assistant with all its versions",
          params: assistantPath,
          querystring: deleteQuery,
          response: { 204: z.null().describe("Deleted."), ...notFound, ...invalid },
        },
      },
      async (request, reply) => {
        await service.remove(request.caller, request.params.assistant_id, {
          withThreads: request.query.delete_threads ?? false,
        });
        return await reply.code(204).send(null);
      },
    );
  };
