import { z } from "zod";
import { invalid, runNotFound } from "../../../platform/domain/errors.ts";
import { callerGone } from "../../../http/caller-gone.ts";
import type { RoutePlugin } from "../../../http/route-plugin.ts";
import { refusals, tags } from "../descriptions.ts";
import { cancelManyBody, cancelManyQuery, cancelQuery, runPath } from "../schemas.ts";
import type { CancellationService } from "./service.ts";

export const createCancellationRoutes =
  (service: CancellationService): RoutePlugin =>
  async (app) => {
    app.post(
      "/runs/cancel",
      {
        schema: {
          tags,
          summary: "Cancel several runs",
          querystring: cancelManyQuery,
          body: cancelManyBody,
          response: { 204: z.null(), ...refusals },
        },
      },
      async (request, reply) => {
        const { status, thread_id: threadId, run_ids: runIds } = request.body;
        if (status === undefined && runIds === undefined) {
          throw invalid("Name the runs to cancel by 'run_ids', or say by 'status' which of them.");
        }
        const found = await service.cancelMany(
          request.caller,
          { status: status ?? "all", threadId, runIds },
          request.query.action ?? "interrupt",
        );
        if (found === 0 && runIds !== undefined) throw runNotFound(runIds.join("', '"));
        return await reply.code(204).send(null);
      },
    );

    app.post(
      "/threads/:thread_id/runs/:run_id/cancel",
      {
        // The request counts as an open stream only while it waits: a caller with all streams open can still cancel.
        config: { rate: "writes" },
        schema: {
          tags,
          summary: "Cancel a run",
          params: runPath,
          querystring: cancelQuery,
          response: { 202: z.null(), 204: z.null(), ...refusals },
        },
      },
      async (request, reply) => {
        const { wait: waits = false, action = "interrupt", reason = "requested" } = request.query;
        if (reason === "taken" && action === "rollback")
          throw invalid("'reason' can be 'taken' only where 'action' is 'interrupt'.");
        const close = waits ? request.openStream() : undefined;
        try {
          await service.cancel(
            request.caller,
            { threadId: request.params.thread_id, runId: request.params.run_id },
            { action, reason },
            waits ? { signal: callerGone(reply.raw) } : undefined,
          );
        } finally {
          close?.();
        }
        return await reply.code(waits ? 204 : 202).send(null);
      },
    );
  };
