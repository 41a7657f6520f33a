import type { RoutePlugin } from "../../../http/route-plugin.ts";
import { refusals, tags } from "../descriptions.ts";
import { runPath } from "../schemas.ts";
import { trace } from "./schemas.ts";
import type { TraceService } from "./service.ts";

export const createTraceRoutes =
  (service: TraceService): RoutePlugin =>
  async (app) => {
    app.get(
      "/threads/:thread_id/runs/:run_id/trace",
      {
        schema: {
          tags,
          summary: "Get what a run did",
          description:
            "The nodes, the calls of models and the calls of tools of each attempt, with their times, errors and tokens. " +
            "While the run goes on, the answer is two seconds old at most. An attempt has 256 KB at most; " +
            "`dropped_spans` counts what was left out.",
          params: runPath,
          response: { 200: trace, ...refusals },
        },
      },
      async ({ caller, params }) =>
        await service.get(caller, { threadId: params.thread_id, runId: params.run_id }),
    );
  };
