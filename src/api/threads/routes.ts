import type { FastifyReply } from "fastify";
import { z } from "zod";
import type { Caller } from "../../access/caller.ts";
import { callerGone } from "../../http/caller-gone.ts";
import { sendItems } from "../../http/large-answers.ts";
import type { RoutePlugin } from "../../http/route-plugin.ts";
import { errorAnswer } from "../../platform/domain/json-schemas.ts";
import type { SeenThread } from "./records.ts";
import * as schemas from "./schemas.ts";
import type { ThreadService } from "./service.ts";
import type { HistoryOptions, StateOptions } from "./state/state.ts";

const NO_CONTENT = 204;
const tags = ["Threads"];
/** Parts of the schemas of routes that name a thread. */
const ofThread = { tags, params: schemas.threadPath };

/** RFC 7240: the caller doesn't want the record back. */
const prefersMinimal = (prefer: string | string[] | undefined): boolean =>
  String(prefer ?? "")
    .split(",")
    .some((preference) => preference.trim().toLowerCase() === "return=minimal");

const sendJson = (reply: FastifyReply, text: string): FastifyReply =>
  reply.type("application/json; charset=utf-8").send(text);

const recordRoutes =
  ({ records, upkeep }: ThreadService): RoutePlugin =>
  async (app) => {
    const sendRecord = async (reply: FastifyReply, thread: SeenThread): Promise<FastifyReply> =>
      sendJson(reply, await records.write(thread, callerGone(reply.raw)));

    app.post(
      "/threads",
      {
        config: { largeBody: true },
        schema: {
          tags,
          summary: "Create a thread",
          body: schemas.threadCreateBody,
          response: { 200: schemas.threadRecord, 409: errorAnswer, 422: errorAnswer },
        },
      },
      async (request, reply) => {
        // The request itself counts as the first write.
        const updates = schemas.updatesIn(request.body.supersteps ?? []);
        if (updates > 1) request.charge("writes", updates - 1);
        return await sendRecord(reply, await records.create(request.caller, request.body));
      },
    );

    app.get(
      "/threads/:thread_id",
      {
        schema: {
          ...ofThread,
          summary: "Get a thread",
          querystring: schemas.threadReadQuery,
          response: { 200: schemas.threadRecord },
        },
      },
      async ({ caller, params, query }, reply) => {
        const includeTtl = query.include?.includes("ttl") ?? false;
        return await sendRecord(reply, { ...(await records.read(caller, params.thread_id)), includeTtl });
      },
    );

    app.patch(
      "/threads/:thread_id",
      {
        schema: {
          ...ofThread,
          summary: "Update a thread",
          body: schemas.threadPatchBody,
          response: { 200: schemas.threadRecord, 204: z.null() },
        },
      },
      async ({ caller, params, body, headers }, reply) => {
        const thread = await records.patch(caller, params.thread_id, body);
        if (!prefersMinimal(headers.prefer)) return await sendRecord(reply, thread);
        return await reply.header("preference-applied", "return=minimal").code(NO_CONTENT).send(null);
      },
    );

    app.post(
      "/threads/:thread_id/copy",
      { schema: { ...ofThread, summary: "Copy a thread", response: { 200: schemas.threadRecord } } },
      async ({ caller, params }, reply) =>
        await sendRecord(reply, await records.copy(caller, params.thread_id)),
    );

    app.post(
      "/threads/prune",
      {
        schema: {
          tags,
          summary: "Delete threads or their old checkpoints",
          body: schemas.threadPruneBody,
          response: { 200: schemas.pruneAnswer, 422: errorAnswer },
        },
      },
      async ({ caller, body }) => ({ pruned_count: await upkeep.prune(caller, body) }),
    );

    app.delete(
      "/threads/:thread_id",
      { schema: { ...ofThread, summary: "Delete a thread", response: { 204: z.null() } } },
      async ({ caller, params }, reply) => {
        await upkeep.delete(caller, params.thread_id);
        return await reply.code(NO_CONTENT).send(null);
      },
    );

    app.get(
      "/threads/:thread_id/storage",
      {
        schema: {
          ...ofThread,
          summary: "Get the bytes that a thread occupies",
          response: { 200: schemas.storageAnswer },
        },
      },
      async ({ caller, params }) => await upkeep.storage(caller, params.thread_id),
    );
  };

const searchRoutes =
  ({ search }: ThreadService): RoutePlugin =>
  async (app) => {
    app.post(
      "/threads/search",
      {
        config: { isRead: true },
        schema: {
          tags,
          summary: "Search threads",
          description:
            "A page ends early when it has 16 MiB, counted with the fields that `select` leaves out: " +
            "`X-Pagination-Next` is the offset of the next one, and " +
            "`X-Pagination-Cursor` its `cursor`, by which a thread that does not change meanwhile is found exactly once; " +
            "an order by `status` has no cursor. " +
            "`X-Pagination-Total` is there if no more than 10,000 match, and no `cursor` is given; the database's statistics " +
            "may say sooner that there are more. A search by `values` is " +
            "answered within a second or refused, then narrow it with `metadata`, `status` or `ids`.",
          body: schemas.threadSearchBody,
          response: { 200: z.array(schemas.threadExtract), 422: errorAnswer },
        },
      },
      async ({ caller, body }, reply) => {
        const { text, total, next, cursor } = await search.page(caller, body, callerGone(reply.raw));
        if (total !== undefined) reply.header("x-pagination-total", total);
        if (next !== undefined) reply.header("x-pagination-next", next);
        if (cursor !== undefined) reply.header("x-pagination-cursor", cursor);
        return sendJson(reply, text);
      },
    );

    app.post(
      "/threads/count",
      {
        config: { isRead: true },
        schema: {
          tags,
          summary: "Count threads",
          body: schemas.threadCountBody,
          response: { 200: z.int(), 422: errorAnswer },
        },
      },
      async ({ caller, body }, reply) =>
        sendJson(reply, String(await search.count(caller, body, callerGone(reply.raw)))),
    );
  };

const stateRoutes =
  ({ states }: ThreadService): RoutePlugin =>
  async (app) => {
    type Target = { caller: Caller; params: { thread_id: string } };
    const sendState = async (
      reply: FastifyReply,
      { caller, params }: Target,
      options: StateOptions,
    ): Promise<FastifyReply> =>
      sendJson(reply, await states.read(caller, params.thread_id, options, callerGone(reply.raw)));
    const read = { ...ofThread, response: { 200: schemas.stateAnswer } };

    app.get(
      "/threads/:thread_id/state",
      { schema: { ...read, summary: "Get the state of a thread", querystring: schemas.stateQuery } },
      async (request, reply) => await sendState(reply, request, request.query),
    );

    app.get(
      "/threads/:thread_id/state/:checkpoint_id",
      {
        schema: {
          ...read,
          summary: "Get the state of a thread at a checkpoint",
          params: schemas.checkpointPath,
          querystring: schemas.stateQuery,
        },
      },
      async (request, reply) => {
        const { checkpoint_id } = request.params;
        return await sendState(reply, request, { ...request.query, checkpoint: { checkpoint_id } });
      },
    );

    app.post(
      "/threads/:thread_id/state/checkpoint",
      {
        config: { isRead: true },
        schema: {
          ...read,
          summary: "Get the state of a thread at a checkpoint or in a subgraph",
          body: schemas.stateAtCheckpointBody,
        },
      },
      async (request, reply) => await sendState(reply, request, request.body),
    );

    app.post(
      "/threads/:thread_id/state",
      {
        config: { largeBody: true },
        schema: {
          ...ofThread,
          summary: "Update the state of a thread",
          body: schemas.stateUpdateBody,
          response: { 200: schemas.stateUpdateAnswer, 409: errorAnswer },
        },
      },
      async ({ caller, params, body }) => await states.update(caller, params.thread_id, body),
    );

    app.patch(
      "/threads/:thread_id/state",
      {
        schema: {
          ...ofThread,
          summary: "Merge metadata into the latest checkpoint",
          body: schemas.statePatchBody,
          response: { 200: schemas.stateUpdateAnswer },
        },
      },
      async ({ caller, params, body }) => await states.patchMetadata(caller, params.thread_id, body.metadata),
    );

    const history = "/threads/:thread_id/history";
    const sendHistory = (
      reply: FastifyReply,
      { caller, params }: Target,
      options: HistoryOptions,
    ): Promise<FastifyReply> =>
      sendItems(reply, states.history(caller, params.thread_id, options, callerGone(reply.raw)));
    const schema = {
      ...ofThread,
      summary: "List the states of a thread, the newest first",
      description:
        "The server sends states as it reads them. If an error occurs after the first megabyte, the server cuts the connection.",
      response: { 200: z.array(schemas.stateAnswer) },
    };
    app.get(
      history,
      { schema: { ...schema, querystring: schemas.historyQuery } },
      async (request, reply) => await sendHistory(reply, request, request.query),
    );
    app.post(
      history,
      { config: { isRead: true }, schema: { ...schema, body: schemas.historyBody } },
      async (request, reply) => await sendHistory(reply, request, request.body),
    );
  };

export const createThreadRoutes =
  (service: ThreadService): RoutePlugin =>
  async (app) => {
    await app.register(recordRoutes(service));
    await app.register(searchRoutes(service));
    await app.register(stateRoutes(service));
  };
