import { z } from "zod";
import { callerGone } from "../../../http/caller-gone.ts";
import { paginationHeaders } from "../../../http/pagination.ts";
import type { RoutePlugin } from "../../../http/route-plugin.ts";
import { invalid, tags } from "../answers.ts";
import { assistantCountBody, assistantExtract, assistantSearchBody } from "../schemas.ts";
import type { SearchService } from "./service.ts";

export const createSearchRoutes =
  (service: SearchService): RoutePlugin =>
  async (app) => {
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
  };
