/**
 * Imports the protocol's package, which takes 230 ms. So only the first request of the protocol loads this file.
 */
import {
  CLIENT_CAPABILITIES_META_KEY,
  createMcpHandler,
  isLegacyRequest,
  isSpecType,
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
import { isJsonObject, type JsonObject } from "../../platform/lib/json.ts";
import { ownField } from "../../platform/lib/names.ts";
import type { Calling, ToolCall, ToolResult } from "./calling.ts";
import {
  isStreamed,
  messagesIn,
  TASKS,
  usesTasks,
  type Client,
  type Exchange,
  type MessageRequest,
} from "./exchange.ts";
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

const createServer = (methods: Methods, exchange: Exchange, era: "modern" | "legacy"): Server => {
  const isModern = era === "modern";
  const server = new Server(SERVER_INFO, {
    capabilities: { tools: {}, ...(isModern ? { extensions: { [TASKS]: {} } } : {}) },
    cacheHints: CACHE_HINTS,
  });
  const { tools, tasks } = methods;

  const answered = async <Result>(method: string, answer: () => Promise<Result>): Promise<Result> =>
    await answer().catch((error: unknown) => {
      throw toProtocolError(error, exchange, method);
    });

  const clientOf = ({ mcpReq: { envelope } }: ServerContext): Client => ({
    cancelsByLeaving: isModern,
    // A request of an older revision does not say what its client can do.
    capabilities:
      ownField(envelope as Record<string, ClientCapabilities> | undefined, CLIENT_CAPABILITIES_META_KEY) ??
      {},
  });

  server.setRequestHandler("tools/list", ({ params }) =>
    answered("tools/list", async () => {
      const page = await tools.list(exchange.caller, params?.cursor);
      return {
        tools: page.tools.map(
          (tool) => ({ ...tool, annotations: { title: tool.title, openWorldHint: true } }) as WireTool,
        ),
        ...(page.nextCursor === undefined ? {} : { nextCursor: page.nextCursor }),
        ...(page.isProvisional ? { ttlMs: 0 } : {}),
      };
    }),
  );

  server.setRequestHandler("tools/call", ({ params }, context) => {
    const { mcpReq } = context;
    const progressToken = mcpReq._meta?.progressToken;
    const onProgress = (progress: number, message: string): Promise<void> =>
      mcpReq.notify({
        method: "notifications/progress",
        params: { progressToken: progressToken!, progress, message },
      });
    const call = {
      arguments: (params.arguments ?? {}) as JsonObject,
      client: clientOf(context),
      requestState: mcpReq.requestState<string>(),
      inputResponses: mcpReq.inputResponses,
      onProgress: progressToken === undefined ? undefined : onProgress,
    };
    return answered(
      "tools/call",
      async () => (await callTool(methods, exchange, params.name, call)) as CallToolResult,
    );
  });
  if (!isModern) return server;

  const onTask = (
    method: string,
    answer: (taskId: string, client: Client, context: ServerContext) => Promise<Record<string, unknown>>,
  ): void =>
    server.setRequestHandler(method, { params: taskParams }, ({ taskId }, context) => {
      const client = clientOf(context);
      const requiredCapabilities = { extensions: { [TASKS]: {} } };
      if (!usesTasks(client)) throw new MissingRequiredClientCapabilityError({ requiredCapabilities });
      return answered(method, () => answer(taskId, client, context));
    });
  onTask("tasks/get", (taskId, client) => tasks.get(taskId, client, exchange));
  onTask("tasks/update", async (taskId, _client, { mcpReq: { inputResponses = {} } }) => {
    await tasks.update(taskId, inputResponses, exchange);
    return {};
  });
  onTask("tasks/cancel", async (taskId, client) => {
    await tasks.cancel(taskId, client, exchange);
    return {};
  });
  return server;
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
    const refused = paramsRefusal(message);
    if (refused !== undefined) return refused;
    const request = messageRequest as Request;
    if (!isStreamed(message) && (await isLegacyRequest(request, message)))
      return await answerPlainly(createServer(methods, exchange, "legacy"), request, message);
    const handler = createMcpHandler(({ era }) => createServer(methods, exchange, era), {
      legacy: "stateless",
      responseMode: isStreamed(message) ? "sse" : "auto",
      keepAliveMs: KEEP_ALIVE_MS,
    });
    return await handler.fetch(request, { parsedBody: message });
  };
