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
            "`X-Pagination-Next` is the next page's offset, and `X-Pagination-Cursor` its `cursor`, by which what does not change " +
            "meanwhile is found exactly once; there is none by `name` and `graph_id`." +
            " `X-Pagination-Total` is there without a `cursor`.",
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
