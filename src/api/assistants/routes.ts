import { z } from "zod";
import { callerGone } from "../../http/caller-gone.ts";
import { paginationHeaders } from "../../http/pagination.ts";
import type { RoutePlugin } from "../../http/route-plugin.ts";
import { errorAnswer } from "../../platform/domain/json-schemas.ts";
import {
  assistantCountBody,
  assistantCreateBody,
  assistantExtract,
  assistantPatchBody,
  assistantPath,
  assistantRecord,
  assistantSearchBody,
  assistantVersionsBody,
  deleteQuery,
  drawingQuery,
  graphDrawing,
  graphSchemas,
  latestBody,
  latestQuery,
  subgraphSchemas,
  subgraphsPath,
  subgraphsQuery,
} from "./schemas.ts";
import type { AssistantService } from "./service.ts";

const tags = ["Assistants"];
const notFound = { 404: errorAnswer };
const invalid = { 422: errorAnswer };

export const createAssistantRoutes =
  (service: AssistantService): RoutePlugin =>
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

    app.post(
      "/assistants/search",
      {
        config: { isRead: true },
        schema: {
          tags,
          summary: "Search or list assistants",
          description:
            "`X-Pagination-Next` is the next page's offset, `X-Pagination-Cursor` its `cursor`. " +
            "Pages by `cursor` return each assistant that does not change meanwhile exactly once; orders by `name` and `graph_id` have no cursor. " +
            "`X-Pagination-Total` is missing with a `cursor`.",
          body: assistantSearchBody,
          response: { 200: z.array(assistantExtract), ...invalid },
        },
      },
      async (request, reply) => {
        const page = await service.search(request.caller, request.body, callerGone(reply.raw));
        void reply.headers(paginationHeaders(page));
        return page.items;
      },
    );

    app.post(
      "/assistants/count",
      {
        config: { isRead: true },
        schema: {
          tags,
          summary: "Count assistants",
          body: assistantCountBody,
          response: { 200: z.int(), ...invalid },
        },
      },
      async (request, reply) => await service.count(request.caller, request.body, callerGone(reply.raw)),
    );

    await app.register(createVersionAndGraphRoutes(service));
  };

const createVersionAndGraphRoutes =
  (service: AssistantService): RoutePlugin =>
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
        const page = await service.versions(
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

    app.get(
      "/assistants/:assistant_id/graph",
      {
        schema: {
          tags,
          summary: "Get the drawing of an assistant's graph",
          params: assistantPath,
          querystring: drawingQuery,
          response: { 200: graphDrawing, ...notFound, ...invalid },
        },
      },
      async (request) =>
        await service.drawing(request.caller, request.params.assistant_id, request.query.xray),
    );

    app.get(
      "/assistants/:assistant_id/schemas",
      {
        schema: {
          tags,
          summary: "Get the JSON schemas of an assistant's graph",
          params: assistantPath,
          response: { 200: graphSchemas, ...notFound, ...invalid },
        },
      },
      async (request) => await service.schemas(request.caller, request.params.assistant_id),
    );

    const subgraphsSchema = {
      tags,
      querystring: subgraphsQuery,
      response: { 200: subgraphSchemas, ...notFound, ...invalid },
    };
    app.get(
      "/assistants/:assistant_id/subgraphs",
      {
        schema: {
          ...subgraphsSchema,
          summary: "Get the schemas of the subgraphs of an assistant's graph",
          params: assistantPath,
        },
      },
      async ({ caller, params, query }) =>
        await service.subgraphs(caller, params.assistant_id, undefined, query.recurse ?? false),
    );

    app.get(
      "/assistants/:assistant_id/subgraphs/:namespace",
      {
        schema: {
          ...subgraphsSchema,
          summary: "Get the schemas of the subgraphs in a namespace",
          params: subgraphsPath,
        },
      },
      async ({ caller, params, query }) =>
        await service.subgraphs(caller, params.assistant_id, params.namespace, query.recurse ?? false),
    );
  };
