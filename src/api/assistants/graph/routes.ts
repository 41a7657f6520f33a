import type { RoutePlugin } from "../../../http/route-plugin.ts";
import { invalid, notFound, tags } from "../answers.ts";
import {
  assistantPath,
  drawingQuery,
  graphDrawing,
  graphSchemas,
  subgraphSchemas,
  subgraphsPath,
  subgraphsQuery,
} from "../schemas.ts";
import type { GraphService } from "./service.ts";

export const createGraphRoutes =
  (service: GraphService): RoutePlugin =>
  async (app) => {
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
