import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { invalid, runNotFound } from "../lib/errors.ts";
import { errorAnswer, jsonValue } from "../lib/json-schemas.ts";
import type { RoutePlugin } from "../lib/route-plugin.ts";
import type { RunReader } from "../streaming/hub.ts";
import { sendRunEvents, wasDropped } from "../streaming/server-sent-events.ts";
import { answerPatiently } from "./patient-answer.ts";
import { toRunRecord } from "./record.ts";
import type { RunSelector } from "./repository.ts";
import {
  bareRunPath,
  cancelManyBody,
  cancelQuery,
  joinQuery,
  joinStreamQuery,
  listQuery,
  runBatchBody,
  runBody,
  runPath,
  runRecord,
  threadlessRunBody,
  threadPath,
} from "./schemas.ts";
import type { CreatedRun } from "./results.ts";
import type { RunService } from "./service.ts";

const tags = ["Runs"];
const threadlessTags = ["Threadless runs"];
const refusals = { 404: errorAnswer, 409: errorAnswer, 422: errorAnswer };
const values = jsonValue.describe(
  "The graph's final values, `__error__` if the run failed, `__interrupt__` with it if it waits.",
);
const events = z.string().describe("Server-sent events; `metadata` comes first.");

const selectorOf = ({ row }: CreatedRun): RunSelector => ({ threadId: row.thread_id, runId: row.run_id });
const runAddress = ({ threadId, runId }: RunSelector): string => `/threads/${threadId}/runs/${runId}`;

/** `Last-Event-ID`: the last event that the client has; -1 for all. */
const lastEventId = (request: FastifyRequest): number | undefined => {
  const header = request.headers["last-event-id"];
  if (typeof header !== "string" || header === "") return undefined;
  if (!/^-?\d{1,15}$/.test(header)) throw invalid("'Last-Event-ID' must be the id of an event, or -1.");
  return Number(header);
};

/** Runs over HTTP: the paths of the contract, on a thread and without one. */
export const createRunRoutes =
  (service: RunService): RoutePlugin =>
  async (app) => {
    let stopping = false;
    app.addHook("preClose", (done) => {
      stopping = true;
      done();
    });

    /** Cancels the run if its client leaves before the answer; not if it is the server that cuts it off. */
    const cancelOnDisconnect = (reply: FastifyReply, selector: RunSelector): void => {
      const onClose = (): void => {
        if (stopping || reply.raw.writableFinished || wasDropped(reply)) return;
        service.cancel(selector, "interrupt", false).catch((error: unknown) => {
          reply.log.debug({ err: error, run_id: selector.runId }, "nothing to cancel after a client left");
        });
      };
      // It may have left while its run was being stored.
      if (reply.raw.destroyed) onClose();
      else reply.raw.once("close", onClose);
    };

    const sendEvents = async (
      reply: FastifyReply,
      selector: RunSelector,
      reader: RunReader,
      modes?: string[],
    ): Promise<Awaited<ReturnType<typeof sendRunEvents>>> => {
      void reply.headers({
        "content-location": runAddress(selector),
        location: `${runAddress(selector)}/stream${modes === undefined ? "" : `?${modes.map((mode) => `stream_mode=${encodeURIComponent(mode)}`).join("&")}`}`,
      });
      return await sendRunEvents(reply, reader, modes === undefined ? {} : { modes: new Set(modes) });
    };

    const stream = async (
      reply: FastifyReply,
      created: CreatedRun,
      onDisconnect: "cancel" | "continue",
    ): Promise<void> => {
      const selector = selectorOf(created);
      const reader = service.readCreated(created);
      if (onDisconnect === "cancel") cancelOnDisconnect(reply, selector);
      if ((await sendEvents(reply, selector, reader)) === "ended") await service.forget(created);
    };

    const wait = async (
      reply: FastifyReply,
      created: CreatedRun,
      onDisconnect: "cancel" | "continue",
    ): Promise<FastifyReply> => {
      const selector = selectorOf(created);
      void reply.headers({
        "content-location": runAddress(selector),
        location: `${runAddress(selector)}/join`,
      });
      if (onDisconnect === "cancel") cancelOnDisconnect(reply, selector);
      return await answerPatiently(reply, service.result(created));
    };

    const answerCreated = (reply: FastifyReply, created: CreatedRun) => {
      void reply.header("content-location", runAddress(selectorOf(created)));
      return toRunRecord(created.row);
    };

    app.post(
      "/threads/:thread_id/runs",
      {
        schema: {
          tags,
          summary: "Create a run in the background",
          params: threadPath,
          body: runBody,
          response: { 200: runRecord, ...refusals },
        },
      },
      async (request, reply) =>
        answerCreated(reply, await service.createOnThread(request.params.thread_id, request.body)),
    );

    app.post(
      "/threads/:thread_id/runs/stream",
      {
        sse: "manual",
        schema: {
          tags,
          summary: "Create a run and stream it",
          params: threadPath,
          body: runBody,
          response: { 200: events, ...refusals },
        },
      },
      async (request, reply) =>
        await stream(
          reply,
          await service.createOnThread(request.params.thread_id, request.body, { streamed: true }),
          request.body.on_disconnect,
        ),
    );

    app.post(
      "/threads/:thread_id/runs/wait",
      {
        schema: {
          tags,
          summary: "Create a run and wait for its result",
          params: threadPath,
          body: runBody,
          response: { 200: values, ...refusals },
        },
      },
      async (request, reply) =>
        await wait(
          reply,
          await service.createOnThread(request.params.thread_id, request.body),
          request.body.on_disconnect,
        ),
    );

    app.post(
      "/runs",
      {
        schema: {
          tags: threadlessTags,
          summary: "Create a threadless run in the background",
          body: threadlessRunBody,
          response: { 200: runRecord, ...refusals },
        },
      },
      async (request, reply) => answerCreated(reply, await service.createThreadless(request.body)),
    );

    app.post(
      "/runs/stream",
      {
        sse: "manual",
        schema: {
          tags: threadlessTags,
          summary: "Create a threadless run and stream it",
          body: threadlessRunBody,
          response: { 200: events, ...refusals },
        },
      },
      async (request, reply) =>
        await stream(
          reply,
          await service.createThreadless(request.body, { streamed: true }),
          request.body.on_disconnect,
        ),
    );

    app.post(
      "/runs/wait",
      {
        schema: {
          tags: threadlessTags,
          summary: "Create a threadless run and wait for its result",
          body: threadlessRunBody,
          response: { 200: values, ...refusals },
        },
      },
      async (request, reply) =>
        await wait(reply, await service.createThreadless(request.body), request.body.on_disconnect),
    );

    app.post(
      "/runs/batch",
      {
        schema: {
          tags: threadlessTags,
          summary: "Create several threadless runs in the background",
          body: runBatchBody,
          response: { 200: z.array(runRecord), ...refusals },
        },
      },
      async (request) => await service.createBatch(request.body),
    );

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
          { status: status ?? "all", threadId, runIds },
          request.query.action ?? "interrupt",
        );
        if (found === 0 && runIds !== undefined) throw runNotFound(runIds.join("', '"));
        return await reply.code(204).send(null);
      },
    );

    app.get(
      "/threads/:thread_id/runs",
      {
        schema: {
          tags,
          summary: "List the runs of a thread, newest first",
          params: threadPath,
          querystring: listQuery,
          response: { 200: z.array(runRecord.partial()), ...refusals },
        },
      },
      async (request) => {
        const { limit = 10, offset = 0, status, select } = request.query;
        const runs = await service.list(request.params.thread_id, { limit, offset, status });
        if (select === undefined) return runs;
        return runs.map((run) =>
          Object.fromEntries(Object.entries(run).filter(([field]) => select.includes(field))),
        );
      },
    );

    app.get(
      "/threads/:thread_id/runs/:run_id",
      { schema: { tags, summary: "Get a run", params: runPath, response: { 200: runRecord, ...refusals } } },
      async (request) =>
        await service.get({ threadId: request.params.thread_id, runId: request.params.run_id }),
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
        await service.remove({ threadId: request.params.thread_id, runId: request.params.run_id });
        return await reply.code(204).send(null);
      },
    );

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
        await service.get(selector); // a missing one is a 404 before anything is answered
        if (request.query.cancel_on_disconnect) cancelOnDisconnect(reply, selector);
        void reply.headers({
          "content-location": runAddress(selector),
          location: `${runAddress(selector)}/join`,
        });
        return await answerPatiently(reply, service.join(selector));
      },
    );

    const joinStream = async (
      request: FastifyRequest,
      reply: FastifyReply,
      selector: RunSelector,
      query: z.output<typeof joinStreamQuery>,
    ): Promise<void> => {
      const reader = await service.read(selector, lastEventId(request));
      if (query.cancel_on_disconnect) cancelOnDisconnect(reply, selector);
      await sendEvents(reply, selector, reader, query.stream_mode);
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
        await joinStream(request, reply, await service.locate(request.params.run_id), request.query),
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
          { threadId: request.params.thread_id, runId: request.params.run_id },
          action,
          waits,
        );
        return await reply.code(waits ? 204 : 202).send(null);
      },
    );
  };
