/**
 * Imports the protocol's package, which takes 230 ms. So only the first request of the protocol loads this file.
 */
import {
  CLIENT_CAPABILITIES_META_KEY,
  createMcpHandler,
  isLegacyRequest,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  WebStandardStreamableHTTPServerTransport,
  type CallToolResult,
  type ClientCapabilities,
  type ServerContext,
  type Tool as WireTool,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { refusalOf } from "../../http/errors.ts";
import { CallerGoneError, HandlerRefusal, ThreadloomError } from "../../platform/domain/errors.ts";
import { serverVersion } from "../../platform/lib/package-versions.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { ownField } from "../../platform/lib/names.ts";
import type { Calling, ToolCall, ToolResult } from "./calling.ts";
import { isStreamed, TASKS, usesTasks, type Client, type Exchange, type MessageRequest } from "./exchange.ts";
import type { TaskMethods } from "./tasks.ts";
import type { ToolService } from "./tools/service.ts";

/** Tools appear and vanish with assistants. */
const TOOLS_TTL_MS = 10_000;
const ABILITIES_TTL_MS = 3_600_000;
/** Proxies and clients close a silent connection after a minute or more. */
const KEEP_ALIVE_MS = 5_000;

const CACHE_HINTS = {
  "tools/list": { ttlMs: TOOLS_TTL_MS, cacheScope: "private" },
  "server/discover": { ttlMs: ABILITIES_TTL_MS, cacheScope: "public" },
} as const;

const SERVER_INFO = { name: "threadloom", version: serverVersion() };

interface Methods {
  tools: ToolService;
  calling: Calling;
  tasks: TaskMethods;
}

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

/** The caller may not read the assistant, but may have another with the same name. */
const unlessHidden = (error: unknown): undefined => {
  if (error instanceof ThreadloomError && error.missing === "assistant") return undefined;
  throw error;
};

const callTool = async (
  { tools, calling }: Methods,
  exchange: Exchange,
  name: string,
  call: Omit<ToolCall, "assistantId">,
): Promise<ToolResult> => {
  // A task that goes on is compared with the tool that the caller sees.
  const likely = call.requestState === undefined ? tools.likely(name) : undefined;
  const first =
    likely === undefined
      ? undefined
      : await calling.call({ ...call, assistantId: likely }, exchange).catch(unlessHidden);
  if (first !== undefined) return first;
  const assistantId = await tools.find(exchange.caller, name);
  if (assistantId === undefined)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool '${name}'.`);
  return await calling.call({ ...call, assistantId }, exchange);
};

const setToolMethods = (
  server: Server,
  methods: Methods,
  exchange: Exchange,
  era: "modern" | "legacy",
): void => {
  server.setRequestHandler("tools/list", async ({ params }) =>
    orProtocolError(exchange, "tools/list", async () => {
      const { tools, nextCursor, isProvisional } = await methods.tools.list(exchange.caller, params?.cursor);
      return {
        tools: tools.map(
          (tool) => ({ ...tool, annotations: { title: tool.title, openWorldHint: true } }) as WireTool,
        ),
        ...(nextCursor === undefined ? {} : { nextCursor }),
        ...(isProvisional ? { ttlMs: 0 } : {}),
      };
    }),
  );

  server.setRequestHandler("tools/call", async ({ params }, context) => {
    const call = {
      arguments: (params.arguments ?? {}) as JsonObject,
      client: clientOf(era, context),
      requestState: context.mcpReq.requestState<string>(),
      inputResponses: context.mcpReq.inputResponses,
      onProgress: progressOf(context),
    };
    return await orProtocolError(
      exchange,
      "tools/call",
      async () => (await callTool(methods, exchange, params.name, call)) as CallToolResult,
    );
  });
};

const setTaskMethods = (server: Server, { tasks }: Methods, exchange: Exchange): void => {
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
    const client = withTasks(context);
    await answered("tasks/cancel", () => tasks.cancel(taskId, client, exchange));
    return {};
  });
};

/** Answers one request. `message`: its parsed body. */
export type AnswerMessage = (
  exchange: Exchange,
  request: MessageRequest,
  message: unknown,
) => Promise<Response>;

/** Older revisions without messages before the answer. The package's own handler would answer with a stream. */
const answerPlainly = async (server: Server, request: Request, message: unknown): Promise<Response> => {
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  // Otherwise the answer would never settle.
  const gone = new Promise<Response>((resolve) => {
    request.signal.addEventListener("abort", () => resolve(new Response(null, { status: 499 })));
  });
  try {
    return await Promise.race([transport.handleRequest(request, { parsedBody: message }), gone]);
  } finally {
    await server.close();
  }
};

export const createAnswering =
  (methods: Methods): AnswerMessage =>
  async (exchange, messageRequest, message) => {
    const serverOf = (era: "modern" | "legacy"): Server => {
      const isModern = era === "modern";
      const server = new Server(SERVER_INFO, {
        capabilities: { tools: {}, ...(isModern ? { extensions: { [TASKS]: {} } } : {}) },
        cacheHints: CACHE_HINTS,
      });
      setToolMethods(server, methods, exchange, era);
      if (isModern) setTaskMethods(server, methods, exchange);
      return server;
    };
    const request = messageRequest as Request;
    if (!isStreamed(message) && (await isLegacyRequest(request, message)))
      return await answerPlainly(serverOf("legacy"), request, message);
    const handler = createMcpHandler(({ era }) => serverOf(era), {
      legacy: "stateless",
      responseMode: isStreamed(message) ? "sse" : "auto",
      keepAliveMs: KEEP_ALIVE_MS,
    });
    return await handler.fetch(request, { parsedBody: message });
  };
