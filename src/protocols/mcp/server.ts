/**
 * Imports the protocol's package, which takes 230 ms. So only the first request of the protocol loads this file.
 */
import {
  CLIENT_CAPABILITIES_META_KEY,
  createMcpHandler,
  isSpecType,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type CallToolResult,
  type ClientCapabilities,
  type ServerContext,
  type Tool as WireTool,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { refusalOf } from "../../http/errors.ts";
import { CallerGoneError, HandlerRefusal } from "../../platform/domain/errors.ts";
import { serverVersion } from "../../platform/lib/package-versions.ts";
import { isJsonObject, type JsonObject } from "../../platform/lib/json.ts";
import { ownField } from "../../platform/lib/names.ts";
import { TASKS, usesTasks, type Client, type Exchange } from "./exchange.ts";
import { messagesIn, staysOpen } from "./messages.ts";
import type { McpService } from "./service.ts";

/** Tools appear and vanish with assistants. */
const TOOLS_TTL_MS = 10_000;
const ABILITIES_TTL_MS = 3_600_000;
/** Proxies and clients close a silent connection after a minute or more. */
const KEEP_ALIVE_MS = 5_000;

const VERSION = serverVersion();

const taskParams = z.looseObject({ taskId: z.string() });

const FAULT = new ProtocolError(
  ProtocolErrorCode.InternalError,
  "The server could not do this; its log says why.",
);

/** Clients sign in or wait because of a status of HTTP. Mistakes in a message are errors of JSON-RPC. */
const isForHttp = (error: unknown, status: number): boolean =>
  [401, 403, 429].includes(status) || status >= 500 || error instanceof HandlerRefusal;

/** Faults are logged and hidden. */
const toProtocolError = (error: unknown, exchange: Exchange, method: string): ProtocolError => {
  if (error instanceof ProtocolError) return error;
  const refusal = refusalOf(error);
  const isRefused = isForHttp(error, refusal?.status ?? 500) && exchange.refuse(error);
  if (refusal !== undefined)
    return new ProtocolError(
      refusal.status < 500 ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError,
      refusal.detail,
    );
  if (!isRefused && !(error instanceof CallerGoneError))
    exchange.onFault(error, `a request of MCP failed: ${method}`);
  return FAULT;
};

const orProtocolError = async <Result>(
  exchange: Exchange,
  method: string,
  answer: () => Promise<Result>,
): Promise<Result> => {
  try {
    return await answer();
  } catch (error) {
    throw toProtocolError(error, exchange, method);
  }
};

const clientOf = (era: "modern" | "legacy", { mcpReq }: ServerContext): Client => ({
  cancelsByLeaving: era === "modern",
  // A request of an older revision does not say what its client can do.
  capabilities:
    ownField(
      mcpReq.envelope as Record<string, ClientCapabilities> | undefined,
      CLIENT_CAPABILITIES_META_KEY,
    ) ?? {},
});

const progressOf = ({ mcpReq }: ServerContext) => {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  return async (progress: number, message: string): Promise<void> =>
    await mcpReq.notify({
      method: "notifications/progress",
      params: { progressToken, progress, message },
    });
};

const setToolMethods = (
  server: Server,
  service: McpService,
  exchange: Exchange,
  era: "modern" | "legacy",
): void => {
  server.setRequestHandler("tools/list", async ({ params }) =>
    orProtocolError(exchange, "tools/list", async () => {
      const { tools, nextCursor, isProvisional } = await service.tools.list(exchange.caller, params?.cursor);
      return {
        tools: tools.map(
          (tool) => ({ ...tool, annotations: { title: tool.title, openWorldHint: true } }) as WireTool,
        ),
        ...(nextCursor === undefined ? {} : { nextCursor }),
        ...(isProvisional ? { ttlMs: 0 } : {}),
      };
    }),
  );

  server.setRequestHandler("tools/call", async ({ params }, context) =>
    orProtocolError(exchange, "tools/call", async () => {
      const assistantId = await service.tools.find(exchange.caller, params.name);
      if (assistantId === undefined)
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool '${params.name}'.`);
      const result = await service.calling.call(
        {
          assistantId,
          arguments: (params.arguments ?? {}) as JsonObject,
          client: clientOf(era, context),
          requestState: context.mcpReq.requestState(),
          inputResponses: context.mcpReq.inputResponses,
          onProgress: progressOf(context),
        },
        exchange,
      );
      return result as CallToolResult;
    }),
  );
};

const setTaskMethods = (server: Server, { tasks }: McpService, exchange: Exchange): void => {
  const withTasks = (context: ServerContext): Client => {
    const client = clientOf("modern", context);
    if (usesTasks(client)) return client;
    throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [TASKS]: {} } } });
  };
  const answered = async <Result>(method: string, answer: () => Promise<Result>): Promise<Result> =>
    await orProtocolError(exchange, method, answer);

  server.setRequestHandler("tasks/get", { params: taskParams }, async ({ taskId }, context) => {
    const client = withTasks(context);
    return await answered("tasks/get", () => tasks.get(taskId, client, exchange));
  });
  server.setRequestHandler("tasks/update", { params: taskParams }, async ({ taskId }, context) => {
    withTasks(context);
    const { inputResponses = {} } = context.mcpReq;
    await answered("tasks/update", () => tasks.update(taskId, inputResponses, exchange));
    return {};
  });
  server.setRequestHandler("tasks/cancel", { params: taskParams }, async ({ taskId }, context) => {
    withTasks(context);
    await answered("tasks/cancel", () => tasks.cancel(taskId, exchange));
    return {};
  });
};

/** The package takes wrong parameters of these methods for a fault of the server (-32603). */
const CHECKED = new Map<unknown, (message: unknown) => boolean>([
  ["initialize", isSpecType.InitializeRequest],
  ["tools/list", isSpecType.ListToolsRequest],
]);

const paramsRefusal = (body: unknown): Response | undefined => {
  const wrong = messagesIn(body).find(
    (message) => isJsonObject(message) && CHECKED.get(message["method"])?.(message) === false,
  ) as JsonObject | undefined;
  if (wrong === undefined) return undefined;
  const { id = null, method } = wrong;
  const error = {
    code: ProtocolErrorCode.InvalidParams,
    message: `The params of '${String(method)}' are not valid.`,
  };
  return Response.json({ jsonrpc: "2.0", id, error }, { status: 400 });
};

/** Answers one request. `message`: its parsed body. */
export const answerMessage = async (
  service: McpService,
  exchange: Exchange,
  request: Request,
  message: unknown,
): Promise<Response> => {
  const refused = paramsRefusal(message);
  if (refused !== undefined) return refused;
  const handler = createMcpHandler(
    ({ era }) => {
      const isModern = era === "modern";
      const server = new Server(
        { name: "threadloom", version: VERSION },
        {
          capabilities: { tools: {}, ...(isModern ? { extensions: { [TASKS]: {} } } : {}) },
          cacheHints: {
            "tools/list": { ttlMs: TOOLS_TTL_MS, cacheScope: "private" },
            "server/discover": { ttlMs: ABILITIES_TTL_MS, cacheScope: "public" },
          },
        },
      );
      setToolMethods(server, service, exchange, era);
      if (isModern) setTaskMethods(server, service, exchange);
      return server;
    },
    {
      legacy: "stateless",
      // A call may take longer than a client waits for the first byte.
      responseMode: staysOpen(message) ? "sse" : "auto",
      keepAliveMs: KEEP_ALIVE_MS,
    },
  );
  return await handler.fetch(request, { parsedBody: message });
};
