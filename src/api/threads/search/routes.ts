import { z } from "zod";
import { callerGone } from "../../../http/caller-gone.ts";
import type { RoutePlugin } from "../../../http/route-plugin.ts";
import { errorAnswer } from "../../../platform/domain/json-schemas.ts";
import { sendJson } from "../json-answers.ts";
import * as schemas from "../schemas.ts";
import type { SearchService } from "./service.ts";

const tags = ["Threads"];

export const createSearchRoutes =
  (service: SearchService): RoutePlugin =>
  async (app) => {
    app.post(
      "/threads/search",
      {
        config: { isRead: true },
        schema: {
          tags,
          summary: "Search threads",
          description:
            "A page ends early when it has 16 MiB: `X-Pagination-Next` is the offset of the next one, and " +
            "`X-Pagination-Cursor` its `cursor`, by which a thread that does not change meanwhile is found exactly once. " +
            "`X-Pagination-Total` is there if no more than 10,000 match, and no `cursor` is given; the database's statistics " +
            "may say sooner that there are more. A search by `values` is " +
            "answered within a second or refused, then narrow it with `metadata`, `status` or `ids`.",
          response: { 200: z.array(schemas.threadExtract), 422: errorAnswer },
          body: schemas.threadSearchBody,
        },
      },
      async (request, reply) => {
        const page = await service.page(request.caller, request.body, callerGone(reply.raw));
        if (page.total !== undefined) reply.header("x-pagination-total", page.total);
        if (page.next !== undefined) reply.header("x-pagination-next", page.next);
        if (page.cursor !== undefined) reply.header("x-pagination-cursor", page.cursor);
        return sendJson(reply, page.text);
      },
    );

    app.post(
      "/threads/count",
      {
        config: { isRead: true },
        schema: {
          tags,
          summary: "Count threads",
          response: { 200: z.int(), 422: errorAnswer },
          body: schemas.threadCountBody,
        },
      },
      async (request, reply) =>
        sendJson(reply, String(await service.count(request.caller, request.body, callerGone(reply.raw)))),
    );
  };
