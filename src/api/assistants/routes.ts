import { z } from "zod";
import { callerGone } from "../../http/caller-gone.ts";
import { paginationHeaders } from "../../http/pagination.ts";
import type { RoutePlugin } from "../../http/route-plugin.ts";
import { errorAnswer } from "../../platform/domain/json-schemas.ts";
import * as schemas from "./schemas.ts";
import type { AssistantService } from "./service.ts";

const tags = ["Assistants"];
const invalid = { 422: errorAnswer };
const refusals = { 404: errorAnswer, ...invalid };
const anAssistant = { 200: schemas.assistantRecord };
/** Parts of the schemas of routes that name an assistant. */
const ofAssistant = { tags, params: schemas.assistantPath };

const recordRoutes =
  (service: AssistantService): RoutePlugin =>
  async (app) => {
    app.post(
      "/assistants",
      {
        schema: {
          tags,
          summary: "Create an assistant with version 1",
          body: schemas.assistantCreateBody,
          response: { ...anAssistant, ...refusals, 409: errorAnswer },
        },
      },
      async ({ caller, body }) => await service.create(caller, body),
    );

    app.get(
      "/assistants/:assistant_id",
      {
        schema: {
          ...ofAssistant,
          summary: "Get an assistant",
          response: { ...anAssistant, 404: errorAnswer },
        },
      },
      async ({ caller, params }) => await service.get(caller, params.assistant_id),
    );

    app.delete(
      "/assistants/:assistant_id",
      {
        schema: {
          ...ofAssistant,
          summary: "Delete an assistant with all its versions",
          querystring: schemas.deleteQuery,
          response: { 204: z.null().describe("Deleted."), ...refusals },
        },
      },
      async ({ caller, params, query }, reply) => {
        const withThreads = query.delete_threads ?? false;
        await service.remove(caller, params.assistant_id, { withThreads });
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
          body: schemas.assistantSearchBody,
          response: { 200: z.array(schemas.assistantExtract), ...invalid },
        },
      },
      async ({ caller, body }, reply) => {
        const page = await service.search(caller, body, callerGone(reply.raw));
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
          body: schemas.assistantCountBody,
          response: { 200: z.int(), ...invalid },
        },
      },
      async ({ caller, body }, reply) => await service.count(caller, body, callerGone(reply.raw)),
    );
  };

const versionRoutes =
  (service: AssistantService): RoutePlugin =>
  async (app) => {
    app.patch(
      "/assistants/:assistant_id",
      {
        schema: {
          ...ofAssistant,
          summary: "Create the next version of an assistant and activate it",
          description:
            "`config` and `context` come from the body alone and are never merged: without them the new version has neither. " +
            "`name`, `description` and `graph_id` stay unless given. `metadata` is merged. " +
            "`POST /assistants/{assistant_id}/latest` activates an earlier version again.",
          body: schemas.assistantPatchBody,
          response: { ...anAssistant, ...refusals },
        },
      },
      async ({ caller, params, body }) => await service.update(caller, params.assistant_id, body),
    );

    app.post(
      "/assistants/:assistant_id/versions",
      {
        config: { isRead: true },
        schema: {
          ...ofAssistant,
          summary: "List the versions of an assistant, newest first",
          body: schemas.assistantVersionsBody,
          response: { 200: z.array(schemas.assistantRecord), ...refusals },
        },
      },
      async ({ caller, params, body }, reply) => {
        const page = await service.versions(caller, params.assistant_id, body, callerGone(reply.raw));
        void reply.headers(paginationHeaders(page));
        return page.items;
      },
    );

    app.post(
      "/assistants/:assistant_id/latest",
      {
        schema: {
          ...ofAssistant,
          summary: "Activate a version of an assistant",
          querystring: schemas.latestQuery,
          body: schemas.latestBody,
          response: { ...anAssistant, ...refusals },
        },
      },
      async ({ caller, params, body, query }) =>
        await service.setLatest(caller, params.assistant_id, body.version ?? query.version),
    );
  };

const graphRoutes =
  (service: AssistantService): RoutePlugin =>
  async (app) => {
    app.get(
      "/assistants/:assistant_id/graph",
      {
        schema: {
          ...ofAssistant,
          summary: "Get the drawing of an assistant's graph",
          querystring: schemas.drawingQuery,
          response: { 200: schemas.graphDrawing, ...refusals },
        },
      },
      async ({ caller, params, query }) => await service.drawing(caller, params.assistant_id, query.xray),
    );

    app.get(
      "/assistants/:assistant_id/schemas",
      {
        schema: {
          ...ofAssistant,
          summary: "Get the JSON schemas of an assistant's graph",
          response: { 200: schemas.graphSchemas, ...refusals },
        },
      },
      async ({ caller, params }) => await service.schemas(caller, params.assistant_id),
    );

    const subgraphs = {
      ...ofAssistant,
      querystring: schemas.subgraphsQuery,
      response: { 200: schemas.subgraphSchemas, ...refusals },
    };
    app.get(
      "/assistants/:assistant_id/subgraphs",
      { schema: { ...subgraphs, summary: "Get the schemas of the subgraphs of an assistant's graph" } },
      async ({ caller, params, query }) =>
        await service.subgraphs(caller, params.assistant_id, undefined, query.recurse ?? false),
    );

    app.get(
      "/assistants/:assistant_id/subgraphs/:namespace",
      {
        schema: {
          ...subgraphs,
          summary: "Get the schemas of the subgraphs in a namespace",
          params: schemas.subgraphsPath,
        },
      },
      async ({ caller, params, query }) =>
        await service.subgraphs(caller, params.assistant_id, params.namespace, query.recurse ?? false),
    );
  };

export const createAssistantRoutes =
  (service: AssistantService): RoutePlugin =>
  async (app) => {
    await app.register(recordRoutes(service));
    await app.register(versionRoutes(service));
    await app.register(graphRoutes(service));
  };
