import { z } from "zod";
import { errorAnswer } from "../../platform/domain/json-schemas.ts";
import { callerGone } from "../../http/caller-gone.ts";
import { paginationHeaders } from "../../http/pagination.ts";
import type { RoutePlugin } from "../../http/route-plugin.ts";
import {
  cronCountBody,
  cronCreateBody,
  cronExtract,
  cronPatchBody,
  cronPath,
  cronRecord,
  cronSearchBody,
  threadCronCreateBody,
  threadPath,
} from "./schemas.ts";
import type { CronService } from "./service.ts";

const tags = ["Crons"];
const invalid = { 422: errorAnswer };
const refusals = { 404: errorAnswer, ...invalid };
const MISSED =
  "While no server with the graph is running, no run is created. Afterwards one run replaces all missed runs.";

const recordRoutes =
  (service: CronService): RoutePlugin =>
  async (app) => {
    app.post(
      "/threads/:thread_id/runs/crons",
      {
        schema: {
          tags,
          summary: "Schedule runs on a thread",
          description: MISSED,
          params: threadPath,
          body: threadCronCreateBody,
          response: { 200: cronRecord, ...refusals },
        },
      },
      async (request) => await service.create(request.caller, request.body, request.params.thread_id),
    );

    app.post(
      "/runs/crons",
      {
        schema: {
          tags,
          summary: "Schedule runs, each on its own thread",
          description: MISSED,
          body: cronCreateBody,
          response: { 200: cronRecord, ...refusals },
        },
      },
      async (request) => await service.create(request.caller, request.body, null),
    );

    app.get(
      "/runs/crons/:cron_id",
      {
        schema: { tags, summary: "Get a cron", params: cronPath, response: { 200: cronRecord, ...refusals } },
      },
      async (request) => await service.get(request.caller, request.params.cron_id),
    );

    app.patch(
      "/runs/crons/:cron_id",
      {
        schema: {
          tags,
          summary: "Change a cron",
          description:
            "Fields that the body omits stay. `end_time: null` removes the end time. `metadata` is merged, every other field is replaced.",
          params: cronPath,
          body: cronPatchBody,
          response: { 200: cronRecord, ...refusals },
        },
      },
      async (request) => await service.patch(request.caller, request.params.cron_id, request.body),
    );

    app.delete(
      "/runs/crons/:cron_id",
      {
        schema: {
          tags,
          summary: "Delete a cron; its runs stay",
          params: cronPath,
          response: { 204: z.null(), ...refusals },
        },
      },
      async (request, reply) => {
        await service.remove(request.caller, request.params.cron_id);
        return reply.code(204).send(null);
      },
    );
  };

const searchRoutes =
  (service: CronService): RoutePlugin =>
  async (app) => {
    app.post(
      "/runs/crons/search",
      {
        config: { isRead: true },
        schema: {
          tags,
          summary: "Search or list crons",
          description:
            "`X-Pagination-Next` is the next page's offset, `X-Pagination-Cursor` its `cursor`. " +
            "With `cursor`, each cron appears exactly once unless it changes between two pages, and `X-Pagination-Total` is missing.",
          body: cronSearchBody,
          response: { 200: z.array(cronExtract), ...invalid },
        },
      },
      async (request, reply) => {
        const page = await service.search(request.caller, request.body, callerGone(reply.raw));
        void reply.headers(paginationHeaders(page));
        return page.items;
      },
    );

    app.post(
      "/runs/crons/count",
      {
        config: { isRead: true },
        schema: {
          tags,
          summary: "Count crons",
          body: cronCountBody,
          response: { 200: z.int(), ...invalid },
        },
      },
      async (request, reply) => await service.count(request.caller, request.body, callerGone(reply.raw)),
    );
  };

export const createCronRoutes =
  (service: CronService): RoutePlugin =>
  async (app) => {
    await app.register(recordRoutes(service));
    await app.register(searchRoutes(service));
  };
