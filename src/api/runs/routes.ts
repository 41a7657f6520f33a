import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Caller } from "../../access/caller.ts";
import { callerGone } from "../../http/caller-gone.ts";
import type { RoutePlugin } from "../../http/route-plugin.ts";
import { invalid, runNotFound } from "../../platform/domain/errors.ts";
import { createCreationRoutes } from "./creation/routes.ts";
import { createRunAnswers, type RunAnswers } from "./joining/answers.ts";
import type { RunSelector } from "./repository.ts";
import * as schemas from "./schemas.ts";
import { conflicts, events, refusals, tags, threadlessTags, values } from "./schemas.ts";
import type { RunService } from "./service.ts";
import { summaryAnswer, summaryQuery } from "./summary.ts";
import { trace } from "./traces/schemas.ts";

const NO_CONTENT = 204;
/** Parts of the schemas of routes that name a run. */
const ofRun = { tags, params: schemas.runPath };

const selectorOf = ({ params }: { params: z.output<typeof schemas.runPath> }): RunSelector => ({
  threadId: params.thread_id,
  runId: params.run_id,
});

const pick = (run: Partial<schemas.RunRecord>, select: readonly string[]): Partial<schemas.RunRecord> =>
  Object.fromEntries(Object.entries(run).filter(([field]) => select.includes(field)));

interface FoundRuns<Run> {
  runs: Run[];
  total?: number | undefined;
  next: number | undefined;
  cursor: string | undefined;
}

const sendRuns = <Run extends Partial<schemas.RunRecord>>(
  reply: FastifyReply,
  { runs, total, next, cursor }: FoundRuns<Run>,
  select: readonly string[] | undefined,
): Partial<schemas.RunRecord>[] => {
  if (total !== undefined) reply.header("x-pagination-total", total);
  if (next !== undefined) reply.header("x-pagination-next", next);
  if (cursor !== undefined) reply.header("x-pagination-cursor", cursor);
  return select === undefined ? runs : runs.map((run) => pick(run, select));
};

const recordRoutes =
  ({ records, summary, traces }: RunService): RoutePlugin =>
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
          body: schemas.runSearchBody,
          response: { 200: z.array(schemas.runExtract), ...refusals },
        },
      },
      async ({ caller, body }, reply) =>
        sendRuns(reply, await records.search(caller, body, callerGone(reply.raw)), body.select),
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
          params: schemas.threadPath,
          querystring: schemas.listQuery,
          response: { 200: z.array(schemas.runRecord.partial()), ...refusals },
        },
      },
      async ({ caller, params, query }, reply) => {
        const { limit = 10, offset = 0, cursor, status, select } = query;
        const options = { limit, offset, cursor, status };
        const found = await records.list(caller, params.thread_id, options, callerGone(reply.raw));
        return sendRuns(reply, found, select);
      },
    );

    app.get(
      "/threads/:thread_id/runs/:run_id",
      { schema: { ...ofRun, summary: "Get a run", response: { 200: schemas.runRecord, ...refusals } } },
      async (request) => await records.get(request.caller, selectorOf(request)),
    );

    app.delete(
      "/threads/:thread_id/runs/:run_id",
      {
        schema: {
          ...ofRun,
          summary: "Delete a run that has ended",
          response: { 204: z.null(), ...conflicts },
        },
      },
      async (request, reply) => {
        await records.remove(request.caller, selectorOf(request));
        return await reply.code(NO_CONTENT).send(null);
      },
    );

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
      async ({ caller, query }, reply) => await summary.sums(caller, query.hours, callerGone(reply.raw)),
    );

    app.get(
      "/threads/:thread_id/runs/:run_id/trace",
      {
        schema: {
          ...ofRun,
          summary: "Get what a run did",
          description:
            "The nodes, the calls of models and the calls of tools of each attempt, with their times, errors and tokens. " +
            "While the run goes on, the answer is two seconds old at most. An attempt has 256 KB at most; " +
            "`dropped_spans` counts what was left out.",
          response: { 200: trace, ...refusals },
        },
      },
      async (request) => await traces.get(request.caller, selectorOf(request)),
    );
  };

/** -1: all events. Without an event, a client uses the parameter in `Location`. */
const lastEventId = (request: FastifyRequest, named: number | undefined): number | undefined => {
  const header = request.headers["last-event-id"];
  if (typeof header !== "string" || header === "") return named;
  if (!/^-?\d{1,15}$/.test(header)) throw invalid("'Last-Event-ID' must be the id of an event, or -1.");
  return Number(header);
};

const onDisconnectOf = ({ cancel_on_disconnect: cancels }: z.output<typeof schemas.joinQuery>) =>
  cancels ? "cancel" : "continue";

const joiningRoutes =
  ({ joining }: RunService, answers: RunAnswers): RoutePlugin =>
  async (app) => {
    app.get(
      "/threads/:thread_id/runs/:run_id/join",
      {
        config: { waits: true },
        schema: {
          ...ofRun,
          summary: "Wait until a run has ended",
          querystring: schemas.joinQuery,
          response: { 200: values, ...refusals },
        },
      },
      async (request, reply) => {
        const selector = selectorOf(request);
        await joining.assertExists(request.caller, selector); // A missing run must be a 404 before the 200 is sent.
        return answers.join(reply, selector, onDisconnectOf(request.query));
      },
    );

    const joinStream = async (
      request: FastifyRequest & { caller: Caller },
      reply: FastifyReply,
      selector: RunSelector,
      query: z.output<typeof schemas.joinStreamQuery>,
    ): Promise<void> => {
      const after = lastEventId(request, query.last_event_id);
      const { stream_mode: modes, namespace: namespaces, checkpoint_id: checkpointId } = query;
      const reader = await joining.read(request.caller, selector, { after, checkpointId });
      const onDisconnect = onDisconnectOf(query);
      await answers.joinStream(reply, selector, reader, {
        ...{ modes, namespaces, after, checkpointId, onDisconnect },
      });
    };

    const streamSchema = {
      querystring: schemas.joinStreamQuery,
      headers: schemas.joinStreamHeaders,
      response: { 200: events, ...refusals },
    };
    app.get(
      "/threads/:thread_id/runs/:run_id/stream",
      { sse: "manual", schema: { ...ofRun, summary: "Stream an existing run", ...streamSchema } },
      async (request, reply) => await joinStream(request, reply, selectorOf(request), request.query),
    );

    app.get(
      "/runs/:run_id/stream",
      {
        sse: "manual",
        schema: {
          tags: threadlessTags,
          summary: "Stream a run by its id alone",
          params: schemas.bareRunPath,
          ...streamSchema,
        },
      },
      async (request, reply) => {
        const selector = await joining.locate(request.caller, request.params.run_id);
        await joinStream(request, reply, selector, request.query);
      },
    );
  };

const cancellationRoutes =
  ({ cancellation }: RunService): RoutePlugin =>
  async (app) => {
    app.post(
      "/runs/cancel",
      {
        schema: {
          tags,
          summary: "Cancel several runs",
          querystring: schemas.cancelManyQuery,
          body: schemas.cancelManyBody,
          response: { 204: z.null(), ...refusals },
        },
      },
      async ({ caller, body, query }, reply) => {
        const { status, thread_id: threadId, run_ids: runIds } = body;
        if (status === undefined && runIds === undefined)
          throw invalid("Name the runs to cancel by 'run_ids', or say by 'status' which of them.");
        const filter = { status: status ?? "all", threadId, runIds };
        const found = await cancellation.cancelMany(caller, filter, query.action ?? "interrupt");
        if (found === 0 && runIds !== undefined) throw runNotFound(runIds.join("', '"));
        return await reply.code(NO_CONTENT).send(null);
      },
    );

    app.post(
      "/threads/:thread_id/runs/:run_id/cancel",
      {
        // The request counts as an open stream only while it waits: a caller with all streams open can still cancel.
        config: { rate: "writes" },
        schema: {
          ...ofRun,
          summary: "Cancel a run",
          querystring: schemas.cancelQuery,
          response: { 202: z.null(), 204: z.null(), ...refusals },
        },
      },
      async (request, reply) => {
        const { wait: waits = false, action = "interrupt", reason = "requested" } = request.query;
        if (reason === "taken" && action === "rollback")
          throw invalid("'reason' can be 'taken' only where 'action' is 'interrupt'.");
        const close = waits ? request.openStream() : undefined;
        const wait = waits ? { signal: callerGone(reply.raw) } : undefined;
        try {
          await cancellation.cancel(request.caller, selectorOf(request), { action, reason }, wait);
        } finally {
          close?.();
        }
        return await reply.code(waits ? NO_CONTENT : 202).send(null);
      },
    );
  };

export const createRunRoutes =
  (service: RunService): RoutePlugin =>
  async (app) => {
    const answers = createRunAnswers(app, service);
    await app.register(createCreationRoutes(service.creation, answers));
    await app.register(recordRoutes(service));
    await app.register(joiningRoutes(service, answers));
    await app.register(cancellationRoutes(service));
  };
