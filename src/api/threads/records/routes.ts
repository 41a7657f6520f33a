import type { FastifyReply } from "fastify";
import { z } from "zod";
import { callerGone } from "../../../http/caller-gone.ts";
import type { RoutePlugin } from "../../../http/route-plugin.ts";
import { errorAnswer } from "../../../platform/domain/json-schemas.ts";
import { NO_CONTENT, sendJson } from "../json-answers.ts";
import * as schemas from "../schemas.ts";
import type { RecordService, SeenThread } from "./service.ts";

/** RFC 7240: the caller doesn't want the record back. */
const prefersMinimal = (prefer: string | string[] | undefined): boolean =>
  String(prefer ?? "")
    .split(",")
    .some((preference) => preference.trim().toLowerCase() === "return=minimal");

const tags = ["Threads"];

export const createRecordRoutes =
  (service: RecordService): RoutePlugin =>
  async (app) => {
    const sendRecord = async (reply: FastifyReply, thread: SeenThread): Promise<FastifyReply> =>
      sendJson(reply, await service.write(thread, callerGone(reply.raw)));

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
      async (request, reply) => {
        // The request itself counts as the first write.
        const updates = schemas.updatesIn(request.body.supersteps ?? []);
        if (updates > 1) request.charge("writes", updates - 1);
        return await sendRecord(reply, await service.create(request.caller, request.body));
      },
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
        const thread = await service.read(request.caller, request.params.thread_id);
        return await sendRecord(reply, { ...thread, includeTtl });
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
        const thread = await service.patch(request.caller, request.params.thread_id, request.body);
        if (prefersMinimal(request.headers.prefer)) {
          return reply.header("preference-applied", "return=minimal").code(NO_CONTENT).send(null);
        }
        return await sendRecord(reply, thread);
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
        await sendRecord(reply, await service.copy(request.caller, request.params.thread_id)),
    );
  };
