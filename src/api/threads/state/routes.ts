import type { FastifyReply } from "fastify";
import { z } from "zod";
import type { Caller } from "../../../access/caller.ts";
import { callerGone } from "../../../http/caller-gone.ts";
import { sendItems } from "../../../http/large-answers.ts";
import type { RoutePlugin } from "../../../http/route-plugin.ts";
import { errorAnswer } from "../../../platform/domain/json-schemas.ts";
import { sendJson } from "../json-answers.ts";
import * as schemas from "../schemas.ts";
import type { StateService } from "./service.ts";
import type { HistoryOptions } from "./state.ts";

const tags = ["Threads"];

const readRoutes =
  (service: StateService): RoutePlugin =>
  async (app) => {
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
      async (request, reply) => {
        const { thread_id } = request.params;
        const gone = callerGone(reply.raw);
        return sendJson(reply, await service.read(request.caller, thread_id, request.query, gone));
      },
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
        const at = { ...request.query, checkpoint: { checkpoint_id } };
        const gone = callerGone(reply.raw);
        return sendJson(reply, await service.read(request.caller, thread_id, at, gone));
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
      async (request, reply) => {
        const { thread_id } = request.params;
        const gone = callerGone(reply.raw);
        return sendJson(reply, await service.read(request.caller, thread_id, request.body, gone));
      },
    );
  };

const writeRoutes =
  (service: StateService): RoutePlugin =>
  async (app) => {
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
      async (request) => service.update(request.caller, request.params.thread_id, request.body),
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
      async (request) =>
        service.patchMetadata(request.caller, request.params.thread_id, request.body.metadata),
    );
  };

const historyRoutes =
  (service: StateService): RoutePlugin =>
  async (app) => {
    const schema = {
      tags,
      summary: "List the states of a thread, the newest first",
      description:
        "The server sends states as it reads them. If an error occurs after the first megabyte, the server cuts the connection.",
      response: { 200: z.array(schemas.stateAnswer) },
      params: schemas.threadPath,
    };
    const send = (
      reply: FastifyReply,
      caller: Caller,
      threadId: string,
      options: HistoryOptions,
    ): Promise<FastifyReply> =>
      sendItems(reply, service.history(caller, threadId, options, callerGone(reply.raw)));
    const path = "/threads/:thread_id/history";
    app.get(path, { schema: { ...schema, querystring: schemas.historyQuery } }, async (request, reply) =>
      send(reply, request.caller, request.params.thread_id, request.query),
    );
    app.post(
      path,
      { config: { isRead: true }, schema: { ...schema, body: schemas.historyBody } },
      async (request, reply) => send(reply, request.caller, request.params.thread_id, request.body),
    );
  };

export const createStateRoutes =
  (service: StateService): RoutePlugin =>
  async (app) => {
    await app.register(readRoutes(service));
    await app.register(writeRoutes(service));
    await app.register(historyRoutes(service));
  };
