import type { FastifyReply, FastifyRequest } from "fastify";
import { answerUnknownRoute } from "../../http/errors.ts";
import type { RoutePlugin } from "../../http/route-plugin.ts";
import { ThreadloomError } from "../../platform/domain/errors.ts";
import {
  agentPath,
  agentQuery,
  answer,
  configPath,
  listQuery,
  message,
  pushConfig,
  rpcBody,
  taskPath,
  taskQuery,
} from "./schemas.ts";
import type { A2aService } from "./service.ts";
import { createServing, REST, RPC, type Serving } from "./serving.ts";

const tags = ["A2A"];
const response = { 200: answer };
const config = { largeBody: true, rate: "reads" } as const;
const PARSE_ERROR = -32700;

const rpcRoutes =
  (serving: Serving): RoutePlugin =>
  async (app) => {
    app.setErrorHandler((error, _request, reply) => {
      if (!(error instanceof ThreadloomError) || error.kind !== "malformed") throw error;
      return reply
        .code(400)
        .send({ jsonrpc: "2.0", id: null, error: { code: PARSE_ERROR, message: error.message } });
    });
    app.post(
      "/a2a/:assistant_id",
      {
        config,
        sse: "manual",
        schema: {
          tags,
          summary: "Call an assistant over A2A's JSON-RPC",
          description: "The header A2A-Version says the dialect: 0.3 (also without the header) or 1.0.",
          params: agentPath,
          body: rpcBody,
          response,
        },
      },
      async (request, reply) =>
        await serving.serve(request, reply, {
          ...{ assistantId: request.params.assistant_id, body: request.body, binding: RPC },
        }),
    );
  };

const cardRoutes =
  (serving: Serving): RoutePlugin =>
  async (app) => {
    const summary = "Get the A2A card of an assistant";
    app.get(
      "/.well-known/agent-card.json",
      { schema: { tags, summary, querystring: agentQuery, response } },
      async (request, reply) => await serving.sendCard(request, reply, request.query.assistant_id),
    );
    for (const path of [".well-known/agent-card.json", "extendedAgentCard"]) {
      app.get(
        `/a2a/:assistant_id/${path}`,
        { schema: { tags, summary, params: agentPath, response } },
        async (request, reply) => await serving.sendCard(request, reply, request.params.assistant_id),
      );
    }
  };

type Ask = (
  request: FastifyRequest,
  reply: FastifyReply,
  path: { assistant_id: string },
  params: unknown,
) => Promise<FastifyReply | undefined>;

/** REST's requests are those of JSON-RPC in another form. */
const restOf =
  (serving: Serving, method: string): Ask =>
  (request, reply, { assistant_id: assistantId }, params) =>
    serving.serve(request, reply, {
      ...{ assistantId, binding: REST },
      body: { jsonrpc: "2.0", id: 0, method, params },
    });

/** `<id>`, `<id>:cancel` or `<id>:subscribe`. */
const taskIn = (text: string): { id: string; verb: string | undefined } => {
  const [, id = text, verb] = /^(.*):(cancel|subscribe)$/.exec(text) ?? [];
  return { id, verb };
};

const taskRoutes =
  (serving: Serving): RoutePlugin =>
  async (app) => {
    for (const [verb, method] of [
      ["send", "SendMessage"],
      ["stream", "SendStreamingMessage"],
    ] as const) {
      const ask = restOf(serving, method);
      app.post(
        `/a2a/:assistant_id/message::${verb}`,
        {
          config,
          sse: "manual",
          schema: { tags, summary: `${method} of A2A 1.0`, params: agentPath, body: message, response },
        },
        async (request, reply) => await ask(request, reply, request.params, request.body),
      );
    }

    const list = restOf(serving, "ListTasks");
    app.get(
      "/a2a/:assistant_id/tasks",
      {
        schema: {
          tags,
          summary: "ListTasks of A2A 1.0",
          params: agentPath,
          querystring: listQuery,
          response,
        },
      },
      async (request, reply) => await list(request, reply, request.params, request.query),
    );

    const get = restOf(serving, "GetTask");
    const subscribe = restOf(serving, "SubscribeToTask");
    const cancel = restOf(serving, "CancelTask");
    app.get(
      "/a2a/:assistant_id/tasks/:task",
      {
        sse: "manual",
        schema: {
          tags,
          summary: "GetTask and SubscribeToTask of A2A 1.0",
          params: taskPath,
          querystring: taskQuery,
          response,
        },
      },
      async (request, reply) => {
        const { id, verb } = taskIn(request.params.task);
        if (verb === "cancel") return answerUnknownRoute(request, reply);
        const ask = verb === undefined ? get : subscribe;
        return await ask(request, reply, request.params, { ...request.query, id });
      },
    );
    app.post(
      "/a2a/:assistant_id/tasks/:task",
      {
        sse: "manual",
        schema: {
          tags,
          summary: "CancelTask and SubscribeToTask of A2A 1.0",
          params: taskPath,
          response,
        },
      },
      async (request, reply) => {
        const { id, verb } = taskIn(request.params.task);
        if (verb === undefined) return answerUnknownRoute(request, reply);
        return await (verb === "cancel" ? cancel : subscribe)(request, reply, request.params, { id });
      },
    );
  };

const pushRoutes =
  (serving: Serving): RoutePlugin =>
  async (app) => {
    const path = "/a2a/:assistant_id/tasks/:task/pushNotificationConfigs";
    const schema = { tags, summary: "Push notifications of A2A 1.0", response };
    const create = restOf(serving, "CreateTaskPushNotificationConfig");
    app.post(path, { schema: { ...schema, params: taskPath, body: pushConfig } }, async (request, reply) =>
      create(request, reply, request.params, { ...request.body, taskId: request.params.task }),
    );
    const list = restOf(serving, "ListTaskPushNotificationConfigs");
    app.get(path, { schema: { ...schema, params: taskPath } }, async (request, reply) =>
      list(request, reply, request.params, { taskId: request.params.task }),
    );
    const get = restOf(serving, "GetTaskPushNotificationConfig");
    app.get(`${path}/:config_id`, { schema: { ...schema, params: configPath } }, async (request, reply) =>
      get(request, reply, request.params, { taskId: request.params.task, id: request.params.config_id }),
    );
    const remove = restOf(serving, "DeleteTaskPushNotificationConfig");
    app.delete(`${path}/:config_id`, { schema: { ...schema, params: configPath } }, async (request, reply) =>
      remove(request, reply, request.params, { taskId: request.params.task, id: request.params.config_id }),
    );
  };

/** Assistants as agents of the A2A protocol, over JSON-RPC and REST. */
export const createA2aRoutes =
  (service: A2aService): RoutePlugin =>
  async (app) => {
    const serving = createServing(service);
    await app.register(rpcRoutes(serving));
    await app.register(cardRoutes(serving));
    await app.register(taskRoutes(serving));
    await app.register(pushRoutes(serving));
  };
