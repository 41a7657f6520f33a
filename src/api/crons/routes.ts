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
  "While no server runs that hosts the graph, nothing is run; then one run makes up for all that was missed.";

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
          summary: "Schedule runs, each on a thread of its own",
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
            "What is left out stays. `end_time: null` removes it; metadata are merged, everything else is replaced.",
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
          summary: "Delete a cron; the runs that it has made stay",
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
            "`X-Pagination-Next` is the next page's offset, and `X-Pagination-Cursor` its `cursor`, by which what does not change " +
            "meanwhile is found exactly once. `X-Pagination-Total` is there without a `cursor`.",
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
