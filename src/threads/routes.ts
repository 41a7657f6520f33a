import type { AnswerRoom } from "../http/answer-room.ts";
import type { WhenLarge } from "../lib/large-answers.ts";
import type { FastifyReply } from "fastify";
import { z } from "zod";
import { callerGone } from "../http/caller-gone.ts";
import { errorAnswer } from "../lib/json-schemas.ts";
import type { RoutePlugin } from "../http/route-plugin.ts";
import { createLongAnswers } from "./long-answers.ts";
import * as schemas from "./schemas.ts";
import type { PageAsking } from "./search/pages.ts";
import type { ThreadService } from "./service.ts";

const NO_CONTENT = 204;

/** The services answer JSON text: it goes out as it is. */
const sendJson = (reply: FastifyReply, text: string): FastifyReply =>
  reply.type("application/json; charset=utf-8").send(text);

/** `Prefer: return=minimal` (RFC 7240): the caller doesn't want the record back. */
const prefersMinimal = (prefer: string | string[] | undefined): boolean =>
  String(prefer ?? "")
    .split(",")
    .some((preference) => preference.trim().toLowerCase() === "return=minimal");

const tags = ["Threads"];

export const createThreadRoutes =
  (service: ThreadService, room: AnswerRoom): RoutePlugin =>
  async (app) => {
    const longAnswers = createLongAnswers(service.pacer);
    /** Who waits for a search, and takes a place among the long answers for it. */
    const asking = (reply: FastifyReply): PageAsking => {
      const signal = callerGone(reply.raw);
      return { signal, whenLong: () => longAnswers.begin(reply, signal) };
    };
    /** Of reads, which may be refused. */
    const roomToRead =
      ({ raw }: FastifyReply): WhenLarge =>
      (bytes) =>
        room.reserve(raw, bytes, { isRefusable: true });
    const roomAfterChange =
      ({ raw }: FastifyReply): WhenLarge =>
      (bytes) =>
        room.reserve(raw, bytes, { isRefusable: false });

    app.post(
      "/threads",
      {
        config: { largeBody: true },
        schema: {
          tags,
          summary: "Create a thread",
          response: { 200: schemas.threadRecord, 409: errorAnswer, 422: errorAnswer },
          body: schemas.threadCreateBody,
        },
      },
      async (request, reply) => sendJson(reply, await service.create(request.body, roomAfterChange(reply))),
    );

    app.post(
      "/threads/search",
      {
        schema: {
          tags,
          summary: "Search threads",
          description:
            "A page ends early when it has 16 MiB: `X-Pagination-Next` is the offset of the next one. A search by `values` is " +
            "answered within a second or refused, then narrow it with `metadata`, `status` or `ids`.",
          response: { 200: z.array(schemas.threadExtract), 422: errorAnswer },
          body: schemas.threadSearchBody,
        },
      },
      async (request, reply) => {
        const page = await service.search(request.body, asking(reply));
        reply.header("x-pagination-total", page.total);
        if (page.next !== undefined) reply.header("x-pagination-next", page.next);
        return longAnswers.sendPieces(reply, page.pieces);
      },
    );

    app.post(
      "/threads/count",
      {
        schema: {
          tags,
          summary: "Count threads",
          response: { 200: z.int(), 422: errorAnswer },
          body: schemas.threadCountBody,
        },
      },
      async (request, reply) => sendJson(reply, String(await service.count(request.body, asking(reply)))),
    );

    app.post(
      "/threads/prune",
      {
        schema: {
          tags,
          summary: "Delete threads or their old checkpoints",
          response: { 200: schemas.pruneAnswer, 422: errorAnswer },
          body: schemas.threadPruneBody,
        },
      },
      async (request) => ({ pruned_count: await service.prune(request.body) }),
    );

    app.get(
      "/threads/:thread_id",
      {
        schema: {
          tags,
          summary: "Get a thread",
          response: { 200: schemas.threadRecord },
          params: schemas.threadPath,
          querystring: schemas.threadReadQuery,
        },
      },
      async (request, reply) => {
        const includeTtl = request.query.include?.includes("ttl") ?? false;
        const whenLarge = roomToRead(reply);
        return sendJson(reply, await service.read(request.params.thread_id, { includeTtl, whenLarge }));
      },
    );

    app.patch(
      "/threads/:thread_id",
      {
        schema: {
          tags,
          summary: "Update a thread",
          response: { 200: schemas.threadRecord, 204: z.null() },
          params: schemas.threadPath,
          body: schemas.threadPatchBody,
        },
      },
      async (request, reply) => {
        const record = await service.patch(request.params.thread_id, request.body, roomAfterChange(reply));
        if (prefersMinimal(request.headers.prefer)) {
          return reply.header("preference-applied", "return=minimal").code(NO_CONTENT).send(null);
        }
        return sendJson(reply, record);
      },
    );

    app.delete(
      "/threads/:thread_id",
      {
        schema: {
          tags,
          summary: "Delete a thread",
          response: { 204: z.null() },
          params: schemas.threadPath,
        },
      },
      async (request, reply) => {
        await service.delete(request.params.thread_id);
        return reply.code(NO_CONTENT).send(null);
      },
    );

    app.post(
      "/threads/:thread_id/copy",
      {
        schema: {
          tags,
          summary: "Copy a thread",
          response: { 200: schemas.threadRecord },
          params: schemas.threadPath,
        },
      },
      async (request, reply) =>
        sendJson(reply, await service.copy(request.params.thread_id, roomAfterChange(reply))),
    );

    app.get(
      "/threads/:thread_id/storage",
      {
        schema: {
          tags,
          summary: "Bytes that a thread occupies",
          response: { 200: schemas.storageAnswer },
          params: schemas.threadPath,
        },
      },
      async (request) => service.storage(request.params.thread_id),
    );

    app.get(
      "/threads/:thread_id/state",
      {
        schema: {
          tags,
          summary: "Get the state of a thread",
          response: { 200: schemas.stateAnswer },
          params: schemas.threadPath,
          querystring: schemas.stateQuery,
        },
      },
      async (request, reply) =>
        sendJson(
          reply,
          await service.state(request.params.thread_id, { ...request.query }, roomToRead(reply)),
        ),
    );

    app.get(
      "/threads/:thread_id/state/:checkpoint_id",
      {
        schema: {
          tags,
          summary: "Get the state of a thread at a checkpoint",
          response: { 200: schemas.stateAnswer },
          params: schemas.checkpointPath,
          querystring: schemas.stateQuery,
        },
      },
      async (request, reply) => {
        const { thread_id, checkpoint_id } = request.params;
        return sendJson(
          reply,
          await service.state(
            thread_id,
            { ...request.query, checkpoint: { checkpoint_id } },
            roomToRead(reply),
          ),
        );
      },
    );

    app.post(
      "/threads/:thread_id/state/checkpoint",
      {
        config: { isRead: true },
        schema: {
          tags,
          summary: "Get the state of a thread at a checkpoint or in a subgraph",
          response: { 200: schemas.stateAnswer },
          params: schemas.threadPath,
          body: schemas.stateAtCheckpointBody,
        },
      },
      async (request, reply) =>
        sendJson(reply, await service.state(request.params.thread_id, request.body, roomToRead(reply))),
    );

    app.post(
      "/threads/:thread_id/state",
      {
        config: { largeBody: true },
        schema: {
          tags,
          summary: "Update the state of a thread",
          response: { 200: schemas.stateUpdateAnswer, 409: errorAnswer },
          params: schemas.threadPath,
          body: schemas.stateUpdateBody,
        },
      },
      async (request) => service.updateState(request.params.thread_id, request.body),
    );

    app.patch(
      "/threads/:thread_id/state",
      {
        schema: {
          tags,
          summary: "Merge metadata into the latest checkpoint",
          response: { 200: schemas.stateUpdateAnswer },
          params: schemas.threadPath,
          body: schemas.statePatchBody,
        },
      },
      async (request) => service.patchState(request.params.thread_id, request.body.metadata),
    );

    app.get(
      "/threads/:thread_id/history",
      {
        schema: {
          tags,
          summary: "List the states of a thread, the newest first",
          description: "Sent while it is made. If that fails on the way, the connection is cut.",
          response: { 200: z.array(schemas.stateAnswer) },
          params: schemas.threadPath,
          querystring: schemas.historyQuery,
        },
      },
      async (request, reply) =>
        longAnswers.sendItems(reply, (whenLarge) =>
          service.history(request.params.thread_id, request.query, whenLarge),
        ),
    );

    app.post(
      "/threads/:thread_id/history",
      {
        schema: {
          tags,
          summary: "List the states of a thread, the newest first",
          description: "Sent while it is made. If that fails on the way, the connection is cut.",
          response: { 200: z.array(schemas.stateAnswer) },
          params: schemas.threadPath,
          body: schemas.historyBody,
        },
      },
      async (request, reply) =>
        longAnswers.sendItems(reply, (whenLarge) =>
          service.history(request.params.thread_id, request.body, whenLarge),
        ),
    );
  };
