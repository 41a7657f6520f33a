import { z } from "zod";
import { callerGone } from "../../http/caller-gone.ts";
import { errorAnswer } from "../../platform/domain/json-schemas.ts";
import type { RoutePlugin } from "../../http/route-plugin.ts";
import {
  itemDeleteBody,
  itemGetQuery,
  itemPutBody,
  itemRecord,
  itemsAnswer,
  itemSearchBody,
  namespacesAnswer,
  namespacesBody,
} from "./schemas.ts";
import type { StoreService } from "./service.ts";

const tags = ["Store"];
const invalid = { 422: errorAnswer };
const done = { 204: z.null().describe("Done.") };

export const createStoreRoutes =
  (service: StoreService): RoutePlugin =>
  async (app) => {
    app.put(
      "/store/items",
      {
        config: { largeBody: true },
        schema: {
          tags,
          summary: "Store or update an item",
          body: itemPutBody,
          response: { ...done, ...invalid },
        },
      },
      async (request, reply) => {
        await service.put(request.caller, request.body);
        return await reply.code(204).send(null);
      },
    );

    app.get(
      "/store/items",
      {
        schema: {
          tags,
          summary: "Get an item; null if there is none",
          querystring: itemGetQuery,
          response: { 200: itemRecord.nullable(), ...invalid },
        },
      },
      async (request, reply) => {
        const item = await service.get(request.caller, request.query);
        // As text: Fastify would answer null with an empty body, on which the SDK fails.
        const json = item === undefined ? "null" : JSON.stringify(item);
        return await reply.type("application/json; charset=utf-8").send(json as never);
      },
    );

    app.delete(
      "/store/items",
      {
        schema: {
          tags,
          summary: "Delete an item, if it exists",
          body: itemDeleteBody,
          response: { ...done, ...invalid },
        },
      },
      async (request, reply) => {
        await service.delete(request.caller, request.body);
        return await reply.code(204).send(null);
      },
    );

    app.post(
      "/store/items/search",
      {
        config: { isRead: true },
        schema: {
          tags,
          summary: "Search items under a namespace prefix, the last updated first",
          description:
            "A page ends early at 16 MiB. `X-Pagination-Next` is then the offset of the next page.",
          body: itemSearchBody,
          response: { 200: itemsAnswer, ...invalid },
        },
      },
      async (request, reply) => {
        const { items, next } = await service.search(request.caller, request.body, callerGone(reply.raw));
        if (next !== undefined) reply.header("x-pagination-next", next);
        return { items };
      },
    );

    app.post(
      "/store/namespaces",
      {
        config: { isRead: true },
        schema: {
          tags,
          summary: "List the namespaces that hold items",
          body: namespacesBody,
          response: { 200: namespacesAnswer, ...invalid },
        },
      },
      async (request, reply) => ({
        namespaces: await service.listNamespaces(request.caller, request.body, callerGone(reply.raw)),
      }),
    );
  };
