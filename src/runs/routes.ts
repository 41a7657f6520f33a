import type { AnswerRoom } from "../http/answer-room.ts";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { callerGone } from "../http/caller-gone.ts";
import { invalid, runNotFound } from "../domain/errors.ts";
import type { RoutePlugin } from "../http/route-plugin.ts";
import { createRunAnswers, type RunAnswers } from "./answers.ts";
import { createRunCreationRoutes } from "./creation-routes.ts";
import { events, refusals, tags, threadlessTags, values } from "./descriptions.ts";
import type { RunSelector } from "./repository.ts";
import {
  bareRunPath,
  cancelManyBody,
  cancelQuery,
  joinQuery,
  joinStreamQuery,
  listQuery,
  runExtract,
  runPath,
  runRecord,
  runSearchBody,
  threadPath,
  type RunRecord,
} from "./schemas.ts";
import type { RunService } from "./service.ts";

/**
 * `Last-Event-ID`: the last event that the client has; -1 for all. A client that comes back before it has seen one has
 * no such header, but what `Location` told it.
 */
const lastEventId = (request: FastifyRequest, named: number | undefined): number | undefined => {
  const header = request.headers["last-event-id"];
  if (typeof header !== "string" || header === "") return named;
  if (!/^-?\d{1,15}$/.test(header)) throw invalid("'Last-Event-ID' must be the id of an event, or -1.");
  return Number(header);
};

const onDisconnectOf = ({ cancel_on_disconnect: cancels }: z.output<typeof joinQuery>) =>
  cancels ? "cancel" : "continue";

const pick = (run: Partial<RunRecord>, select: readonly string[]): Partial<RunRecord> =>
  Object.fromEntries(Object.entries(run).filter(([field]) => select.includes(field)));

/** Records of runs. */
const recordRoutes =
  (service: RunService, room: AnswerRoom): RoutePlugin =>
  async (app) => {
    app.post(
      "/runs/search",
      {
        config: { isRead: true },
        schema: {
          tags,
          summary: "Search runs over all threads",
          description:
            "In the order of their creation, the newest first unless `sort_order` is `asc`. What a run was asked to do " +
            "(`kwargs`) is not among the answers: get the run for it. A page may end early for its size. " +
            "`X-Pagination-Next` is the next page's offset, `X-Pagination-Total` is there if no more than 10,000 match and they are soon counted.",
          body: runSearchBody,
          response: { 200: z.array(runExtract), ...refusals },
        },
      },
      async (request, reply) => {
        const { select } = request.body;
        const { runs, total, next } = await service.search(
          request.caller,
          request.body,
          callerGone(reply.raw),
        );
        if (total !== undefined) reply.header("x-pagination-total", total);
        if (next !== undefined) reply.header("x-pagination-next", next);
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
            "A page ends early when it has 16 MiB. `X-Pagination-Next` is the next page's offset; it is missing on the last one.",
          params: threadPath,
          querystring: listQuery,
          response: { 200: z.array(runRecord.partial()), ...refusals },
        },
      },
      async (request, reply) => {
        const { limit = 10, offset = 0, status, select } = request.query;
        const options = { limit, offset, status };
        const { runs, next } = await service.list(
          request.caller,
          request.params.thread_id,
          options,
          callerGone(reply.raw),
        );
        if (next !== undefined) reply.header("x-pagination-next", next);
        if (select === undefined) return runs;
        return runs.map((run) => pick(run, select));
      },
    );

    app.get(
      "/threads/:thread_id/runs/:run_id",
      { schema: { tags, summary: "Get a run", params: runPath, response: { 200: runRecord, ...refusals } } },
      async (request, reply) => {
        const whenLarge = (bytes: number) => room.reserve(reply.raw, bytes, { isRefusable: true });
        const { thread_id: threadId, run_id: runId } = request.params;
        return await service.get(request.caller, { threadId, runId }, whenLarge);
      },
    );

    app.delete(
      "/threads/:thread_id/runs/:run_id",
      {
        schema: {
          tags,
          summary: "Delete a run that has ended",
          params: runPath,
          response: { 204: z.null(), ...refusals },
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

/** Runs that are joined or streamed after their creation. */
const joinRoutes =
  (service: RunService, answers: RunAnswers): RoutePlugin =>
  async (app) => {
    app.get(
      "/threads/:thread_id/runs/:run_id/join",
      {
        schema: {
          tags,
          summary: "Wait until a run has ended",
          params: runPath,
          querystring: joinQuery,
          response: { 200: values, ...refusals },
        },
      },
      async (request, reply) => {
        const selector = { threadId: request.params.thread_id, runId: request.params.run_id };
        await service.assertThere(request.caller, selector); // a missing one is a 404 before anything is answered
        return await answers.join(reply, selector, onDisconnectOf(request.query));
      },
    );

    const joinStream = async (
      request: FastifyRequest,
      reply: FastifyReply,
      selector: RunSelector,
      query: z.output<typeof joinStreamQuery>,
    ): Promise<void> => {
      const after = lastEventId(request, query.last_event_id);
      const reader = await service.read(request.caller, selector, after);
      const onDisconnect = onDisconnectOf(query);
      await answers.joinStream(reply, selector, reader, { modes: query.stream_mode, after, onDisconnect });
    };

    app.get(
      "/threads/:thread_id/runs/:run_id/stream",
      {
        sse: "manual",
        schema: {
          tags,
          summary: "Stream a run that was created before",
          params: runPath,
          querystring: joinStreamQuery,
          response: { 200: events, ...refusals },
        },
      },
      async (request, reply) =>
        await joinStream(
          request,
          reply,
          { threadId: request.params.thread_id, runId: request.params.run_id },
          request.query,
        ),
    );

    app.get(
      "/runs/:run_id/stream",
      {
        sse: "manual",
        schema: {
          tags: threadlessTags,
          summary: "Stream a run by its id alone",
          params: bareRunPath,
          querystring: joinStreamQuery,
          response: { 200: events, ...refusals },
        },
      },
      async (request, reply) =>
        await joinStream(
          request,
          reply,
          await service.locate(request.caller, request.params.run_id),
          request.query,
        ),
    );
  };

const cancelRoutes =
  (service: RunService): RoutePlugin =>
  async (app) => {
    app.post(
      "/runs/cancel",
      {
        schema: {
          tags,
          summary: "Cancel several runs",
          querystring: cancelQuery,
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
        schema: {
          tags,
          summary: "Cancel a run",
          params: runPath,
          querystring: cancelQuery,
          response: { 202: z.null(), 204: z.null(), ...refusals },
        },
      },
      async (request, reply) => {
        const { wait: waits = false, action = "interrupt" } = request.query;
        await service.cancel(
          request.caller,
          { threadId: request.params.thread_id, runId: request.params.run_id },
          action,
          waits ? { signal: callerGone(reply.raw) } : undefined,
        );
        return await reply.code(waits ? 204 : 202).send(null);
      },
    );
  };

/** Runs over HTTP: the paths of the contract, on a thread and without one. */
export const createRunRoutes =
  (service: RunService, room: AnswerRoom): RoutePlugin =>
  async (app) => {
    const answers = createRunAnswers(app, service, room);
    await app.register(createRunCreationRoutes(service, answers));
    await app.register(recordRoutes(service, room));
    await app.register(joinRoutes(service, answers));
    await app.register(cancelRoutes(service));
  };
