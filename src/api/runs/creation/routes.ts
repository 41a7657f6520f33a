import type { FastifyRequest } from "fastify";
import { z } from "zod";
import type { RoutePlugin } from "../../../http/route-plugin.ts";
import type { RunAnswers } from "../joining/answers.ts";
import type { CreatedRun } from "../joining/results.ts";
import * as schemas from "../schemas.ts";
import { conflicts, events, tags, threadlessTags, values } from "../schemas.ts";
import type { CreationManner, CreationService } from "./service.ts";

/** Where runs are created: on a thread, or without one. */
interface Place {
  path: string;
  /** For the summaries of its routes. */
  run: string;
  schema: { tags: string[]; body: typeof schemas.runBody | typeof schemas.threadlessRunBody };
  create(request: FastifyRequest, manner: CreationManner): Promise<CreatedRun>;
}

const creationRoutes =
  ({ path, run, schema, create }: Place, answers: RunAnswers): RoutePlugin =>
  async (app) => {
    const createFor = (request: FastifyRequest, streamed = false): Promise<CreatedRun> =>
      create(request, { streamed, headers: request.configurableHeaders() });

    app.post(
      path,
      {
        config: { largeBody: true, rate: "runs" },
        schema: {
          ...schema,
          summary: `Create a ${run} in the background`,
          response: { 200: schemas.runRecord, ...conflicts },
        },
      },
      async (request, reply) => answers.created(reply, await createFor(request)),
    );

    app.post(
      `${path}/stream`,
      {
        config: { largeBody: true, rate: "runs" },
        sse: "manual",
        schema: {
          ...schema,
          summary: `Create a ${run} and stream it`,
          querystring: schemas.streamQuery,
          response: { 200: events, ...conflicts },
        },
      },
      async (request, reply) => {
        const { on_disconnect: onDisconnect } = request.body;
        const created = await createFor(request, true);
        request.releaseBody();
        await answers.stream(reply, created, { namespaces: request.query.namespace, onDisconnect });
      },
    );

    app.post(
      `${path}/wait`,
      {
        config: { largeBody: true, rate: "runs", waits: true },
        schema: {
          ...schema,
          summary: `Create a ${run} and wait for its result`,
          response: { 200: values, ...conflicts },
        },
      },
      async (request, reply) => {
        const { on_disconnect: onDisconnect } = request.body;
        const created = await createFor(request);
        request.releaseBody();
        return answers.wait(reply, created, onDisconnect);
      },
    );
  };

const placesOf = (creation: CreationService): Place[] => {
  const onThread = { tags, params: schemas.threadPath, body: schemas.runBody };
  return [
    {
      path: "/threads/:thread_id/runs",
      run: "run",
      schema: onThread,
      create: ({ caller, params, body }, manner) =>
        creation.createOnThread(
          caller,
          (params as z.output<typeof schemas.threadPath>).thread_id,
          body as schemas.RunBody,
          manner,
        ),
    },
    {
      path: "/runs",
      run: "threadless run",
      schema: { tags: threadlessTags, body: schemas.threadlessRunBody },
      create: ({ caller, body }, manner) =>
        creation.createThreadless(caller, body as schemas.ThreadlessRunBody, manner),
    },
  ];
};

const batchRoutes =
  (creation: CreationService): RoutePlugin =>
  async (app) => {
    app.post(
      "/runs/batch",
      {
        config: { largeBody: true, rate: "runs" },
        schema: {
          tags: threadlessTags,
          summary: "Create several threadless runs in the background",
          body: schemas.runBatchBody,
          response: { 200: z.array(schemas.runRecord), ...conflicts },
        },
      },
      async (request) => {
        request.charge("runs", request.body.length - 1);
        const headers = request.configurableHeaders();
        return await creation.createBatch(request.caller, request.body, { headers });
      },
    );
  };

export const createCreationRoutes =
  (creation: CreationService, answers: RunAnswers): RoutePlugin =>
  async (app) => {
    for (const place of placesOf(creation)) await app.register(creationRoutes(place, answers));
    await app.register(batchRoutes(creation));
  };
