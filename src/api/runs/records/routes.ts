import { z } from "zod";
import { callerGone } from "../../../http/caller-gone.ts";
import type { RoutePlugin } from "../../../http/route-plugin.ts";
import { conflicts, refusals, tags } from "../descriptions.ts";
import {
  listQuery,
  runExtract,
  runPath,
  runRecord,
  runSearchBody,
  threadPath,
  type RunRecord,
} from "../schemas.ts";
import type { RecordService } from "./service.ts";

const pick = (run: Partial<RunRecord>, select: readonly string[]): Partial<RunRecord> =>
  Object.fromEntries(Object.entries(run).filter(([field]) => select.includes(field)));

export const createRecordRoutes =
  (service: RecordService): RoutePlugin =>
  async (app) => {
    app.post(
      "/runs/search",
      {
        config: { isRead: true },
        schema: {
          tags,
          summary: "Search runs over all threads",
          description:
            "Sorted by creation, the newest first unless `sort_order` is `asc`. The answers omit a run's input and options " +
            "(`kwargs`); get the run to read them. A large page may end early. `X-Pagination-Next` is the next page's offset, " +
            "and `X-Pagination-Cursor` its `cursor`. Pages by `cursor` return each run exactly once. `X-Pagination-Total` is " +
            "present if at most 10,000 runs match, the count is fast, and the request has no `cursor`.",
          body: runSearchBody,
          response: { 200: z.array(runExtract), ...refusals },
        },
      },
      async (request, reply) => {
        const { select } = request.body;
        const { runs, total, next, cursor } = await service.search(
          request.caller,
          request.body,
          callerGone(reply.raw),
        );
        if (total !== undefined) reply.header("x-pagination-total", total);
        if (next !== undefined) reply.header("x-pagination-next", next);
        if (cursor !== undefined) reply.header("x-pagination-cursor", cursor);
        return select === undefined ? runs : runs.map((run) => pick(run, select));
      },
    );

    app.get(
      "/threads/:thread_id/runs",
      {
        schema: {
          tags,
          summary: "List the runs of a thread, newest first",
          description:
            "A page ends early when it has 16 MiB. `X-Pagination-Next` is the next page's offset, and `X-Pagination-Cursor` its " +
            "`cursor`; both are missing on the last page. Pages by `cursor` return each run exactly once.",
          params: threadPath,
          querystring: listQuery,
          response: { 200: z.array(runRecord.partial()), ...refusals },
        },
      },
      async (request, reply) => {
        const { limit = 10, offset = 0, cursor: behind, status, select } = request.query;
        const options = { limit, offset, cursor: behind, status };
        const { runs, next, cursor } = await service.list(
          request.caller,
          request.params.thread_id,
          options,
          callerGone(reply.raw),
        );
        if (next !== undefined) reply.header("x-pagination-next", next);
        if (cursor !== undefined) reply.header("x-pagination-cursor", cursor);
        if (select === undefined) return runs;
        return runs.map((run) => pick(run, select));
      },
    );

    app.get(
      "/threads/:thread_id/runs/:run_id",
      { schema: { tags, summary: "Get a run", params: runPath, response: { 200: runRecord, ...refusals } } },
      async (request) => {
        const { thread_id: threadId, run_id: runId } = request.params;
        return await service.get(request.caller, { threadId, runId });
      },
    );

    app.delete(
      "/threads/:thread_id/runs/:run_id",
      {
        schema: {
          tags,
          summary: "Delete a run that has ended",
          params: runPath,
          response: { 204: z.null(), ...conflicts },
        },
      },
      async (request, reply) => {
        await service.remove(request.caller, {
          threadId: request.params.thread_id,
          runId: request.params.run_id,
        });
        return await reply.code(204).send(null);
      },
    );
  };
