import { z } from "zod";
import { callerGone } from "../../../http/caller-gone.ts";
import { paginationHeaders } from "../../../http/pagination.ts";
import type { RoutePlugin } from "../../../http/route-plugin.ts";
import { invalid, notFound, tags } from "../answers.ts";
import {
  assistantPatchBody,
  assistantPath,
  assistantRecord,
  assistantVersionsBody,
  latestBody,
  latestQuery,
} from "../schemas.ts";
import type { VersionService } from "./service.ts";

export const createVersionRoutes =
  (service: VersionService): RoutePlugin =>
  async (app) => {
    app.patch(
      "/assistants/:assistant_id",
      {
        schema: {
          tags,
          summary: "Create the next version of an assistant and activate it",
          description:
            "`config` and `context` come from the body alone and are never merged: without them the new version has neither. " +
            "`name`, `description` and `graph_id` stay unless given. `metadata` is merged. " +
            "`POST /assistants/{assistant_id}/latest` activates an earlier version again.",
          params: assistantPath,
          body: assistantPatchBody,
          response: { 200: assistantRecord, ...notFound, ...invalid },
        },
      },
      async (request) => await service.update(request.caller, request.params.assistant_id, request.body),
    );

    app.post(
      "/assistants/:assistant_id/versions",
      {
        config: { isRead: true },
        schema: {
          tags,
          summary: "List the versions of an assistant, newest first",
          params: assistantPath,
          body: assistantVersionsBody,
          response: { 200: z.array(assistantRecord), ...notFound, ...invalid },
        },
      },
      async (request, reply) => {
        const page = await service.list(
          request.caller,
          request.params.assistant_id,
          request.body,
          callerGone(reply.raw),
        );
        void reply.headers(paginationHeaders(page));
        return page.items;
      },
    );

    app.post(
      "/assistants/:assistant_id/latest",
      {
        schema: {
          tags,
          summary: "Activate a version of an assistant",
          params: assistantPath,
          querystring: latestQuery,
          body: latestBody,
          response: { 200: assistantRecord, ...notFound, ...invalid },
        },
      },
      async (request) =>
        await service.setLatest(
          request.caller,
          request.params.assistant_id,
          request.body.version ?? request.query.version,
        ),
    );
  };
