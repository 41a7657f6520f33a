import { z } from "zod";
import type { RoutePlugin } from "../../../http/route-plugin.ts";
import type { RunAnswers } from "../joining/answers.ts";
import { conflicts, events, tags, threadlessTags, values } from "../descriptions.ts";
import { runBatchBody, runBody, runRecord, streamQuery, threadlessRunBody, threadPath } from "../schemas.ts";
import type { CreationService } from "./service.ts";

const threadRoutes =
  (service: CreationService, answers: RunAnswers): RoutePlugin =>
  async (app) => {
    app.post(
      "/threads/:thread_id/runs",
      {
        config: { largeBody: true, rate: "runs" },
        schema: {
          tags,
          summary: "Create a run in the background",
          params: threadPath,
          body: runBody,
          response: { 200: runRecord, ...conflicts },
        },
      },
      async (request, reply) =>
        answers.created(
          reply,
          await service.createOnThread(request.caller, request.params.thread_id, request.body, {
            headers: request.configurableHeaders(),
          }),
        ),
    );

    app.post(
      "/threads/:thread_id/runs/stream",
      {
        config: { largeBody: true, rate: "runs" },
        sse: "manual",
        schema: {
          tags,
          summary: "Create a run and stream it",
          params: threadPath,
          querystring: streamQuery,
          body: runBody,
          response: { 200: events, ...conflicts },
        },
      },
      async (request, reply) => {
        const { on_disconnect: onDisconnect } = request.body;
        const created = await service.createOnThread(request.caller, request.params.thread_id, request.body, {
          streamed: true,
          headers: request.configurableHeaders(),
        });
        request.releaseBody();
        await answers.stream(reply, created, { namespaces: request.query.namespace, onDisconnect });
      },
    );

    app.post(
      "/threads/:thread_id/runs/wait",
      {
        config: { largeBody: true, rate: "runs", waits: true },
        schema: {
          tags,
          summary: "Create a run and wait for its result",
          params: threadPath,
          body: runBody,
          response: { 200: values, ...conflicts },
        },
      },
      async (request, reply) => {
        const { on_disconnect: onDisconnect } = request.body;
        const created = await service.createOnThread(request.caller, request.params.thread_id, request.body, {
          headers: request.configurableHeaders(),
        });
        request.releaseBody();
        return answers.wait(reply, created, onDisconnect);
      },
    );
  };

const threadlessRoutes =
  (service: CreationService, answers: RunAnswers): RoutePlugin =>
  async (app) => {
    app.post(
      "/runs",
      {
        config: { largeBody: true, rate: "runs" },
        schema: {
          tags: threadlessTags,
          summary: "Create a threadless run in the background",
          body: threadlessRunBody,
          response: { 200: runRecord, ...conflicts },
        },
      },
      async (request, reply) =>
        answers.created(
          reply,
          await service.createThreadless(request.caller, request.body, {
            headers: request.configurableHeaders(),
          }),
        ),
    );

    app.post(
      "/runs/stream",
      {
        config: { largeBody: true, rate: "runs" },
        sse: "manual",
        schema: {
          tags: threadlessTags,
          summary: "Create a threadless run and stream it",
          querystring: streamQuery,
          body: threadlessRunBody,
          response: { 200: events, ...conflicts },
        },
      },
      async (request, reply) => {
        const { on_disconnect: onDisconnect } = request.body;
        const created = await service.createThreadless(request.caller, request.body, {
          streamed: true,
          headers: request.configurableHeaders(),
        });
        request.releaseBody();
        await answers.stream(reply, created, { namespaces: request.query.namespace, onDisconnect });
      },
    );

    app.post(
      "/runs/wait",
      {
        config: { largeBody: true, rate: "runs", waits: true },
        schema: {
          tags: threadlessTags,
          summary: "Create a threadless run and wait for its result",
          body: threadlessRunBody,
          response: { 200: values, ...conflicts },
        },
      },
      async (request, reply) => {
        const { on_disconnect: onDisconnect } = request.body;
        const created = await service.createThreadless(request.caller, request.body, {
          headers: request.configurableHeaders(),
        });
        request.releaseBody();
        return answers.wait(reply, created, onDisconnect);
      },
    );

    app.post(
      "/runs/batch",
      {
        config: { largeBody: true, rate: "runs" },
        schema: {
          tags: threadlessTags,
          summary: "Create several threadless runs in the background",
          body: runBatchBody,
          response: { 200: z.array(runRecord), ...conflicts },
        },
      },
      async (request) => {
        request.charge("runs", request.body.length - 1);
        return await service.createBatch(request.caller, request.body, {
          headers: request.configurableHeaders(),
        });
      },
    );
  };

export const createCreationRoutes =
  (service: CreationService, answers: RunAnswers): RoutePlugin =>
  async (app) => {
    await app.register(threadRoutes(service, answers));
    await app.register(threadlessRoutes(service, answers));
  };
