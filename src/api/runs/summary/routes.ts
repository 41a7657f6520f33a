import { callerGone } from "../../../http/caller-gone.ts";
import type { RoutePlugin } from "../../../http/route-plugin.ts";
import { refusals, tags } from "../descriptions.ts";
import { summaryAnswer, summaryQuery } from "./schemas.ts";
import type { SummaryService } from "./service.ts";

export const createSummaryRoutes =
  (service: SummaryService): RoutePlugin =>
  async (app) => {
    app.get(
      "/runs/summary",
      {
        schema: {
          tags,
          summary: "Count the runs of the last hours",
          description:
            "By status, per hour and per graph, with the durations of the newest 100,000 ended runs. Deleted runs do not count.",
          querystring: summaryQuery,
          response: { 200: summaryAnswer, ...refusals },
        },
      },
      async ({ caller, query }, reply) => await service.sums(caller, query.hours, callerGone(reply.raw)),
    );
  };
