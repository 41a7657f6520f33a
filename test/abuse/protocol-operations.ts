import type { Json, Operation } from "./operations.ts";

/** Requests by MCP, A2A and AG-UI, whose bodies the OpenAPI document leaves open. */

const MESSAGES: Json = [{ role: "user", content: "hello" }];
const UNKNOWN = "00000000-0000-7000-8000-000000000000";

const post = (
  template: string,
  assistant: string,
  bodies: Json[],
  headers: Record<string, string> = {},
): Operation => ({
  method: "POST",
  template,
  path: template.includes("{assistant_id}") ? { assistant_id: assistant } : {},
  query: {},
  bodies,
  headers: {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    ...headers,
  },
  isWhole: true,
});

const rpc = (method: string, params: Json): Json => ({ jsonrpc: "2.0", id: 1, method, params });

const META: Json = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "abuse", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {
    elicitation: {},
    extensions: { "io.modelcontextprotocol/tasks": {} },
  },
  progressToken: "progress",
};
const CLIENT: Json = {
  protocolVersion: "2025-11-25",
  capabilities: { elicitation: {} },
  clientInfo: { name: "abuse", version: "1" },
};

const mcp = (assistant: string, threadId: string): Operation[] => {
  const call: Json = {
    name: assistant,
    arguments: { messages: MESSAGES, thread_id: threadId },
  };
  const task = `${threadId}:${UNKNOWN}`;
  return [
    post("/mcp", assistant, [
      rpc("initialize", CLIENT),
      rpc("tools/list", {}),
      rpc("tools/call", call),
      rpc("tools/call", { name: assistant, arguments: { messages: MESSAGES }, _meta: { progressToken: 1 } }),
      rpc("ping", {}),
      { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } },
      [rpc("tools/list", {}), rpc("ping", {})],
    ]),
    ...[
      rpc("server/discover", { _meta: META }),
      rpc("tools/list", { _meta: META, cursor: "x" }),
      rpc("tools/call", { ...call, _meta: META }),
      rpc("tools/call", {
        ...call,
        _meta: META,
        requestState: task,
        inputResponses: { x: { action: "accept", content: { value: "yes" } } },
      }),
      rpc("tasks/get", { taskId: task, _meta: META }),
      rpc("tasks/update", { taskId: task, inputResponses: {}, _meta: META }),
      rpc("tasks/cancel", { taskId: task, _meta: META }),
    ].map((body) => {
      const { method, params } = body as { method: string; params: { name?: string } };
      return post("/mcp", assistant, [body], {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        ...(params.name === undefined ? {} : { "mcp-name": params.name }),
      });
    }),
  ];
};

const a2a = (assistant: string, threadId: string): Operation[] => {
  const task = `${threadId}:${UNKNOWN}`;
  const message: Json = {
    messageId: "1",
    role: "ROLE_USER",
    contextId: threadId,
    parts: [{ text: "hello" }, { data: { count: 1 } }],
    metadata: { tone: "dry" },
  };
  const former: Json = {
    kind: "message",
    messageId: "1",
    role: "user",
    contextId: threadId,
    parts: [
      { kind: "text", text: "hello" },
      { kind: "data", data: { count: 1 } },
    ],
  };
  const configuration: Json = {
    acceptedOutputModes: ["text/plain"],
    historyLength: 1,
    returnImmediately: true,
  };
  const url = "https://receiver.invalid/hook";
  const push = { id: "1", url, token: "x", authentication: { scheme: "Bearer", credentials: "y" } };
  const formerPush = { id: "1", url, token: "x", authentication: { schemes: ["Bearer"], credentials: "y" } };
  return [
    post(
      "/a2a/{assistant_id}",
      assistant,
      [
        rpc("SendMessage", { message, configuration }),
        rpc("SendStreamingMessage", { message }),
        rpc("SendMessage", { message: { ...(message as object), taskId: task } }),
        rpc("GetTask", { id: task, historyLength: 1 }),
        rpc("ListTasks", { contextId: threadId, pageSize: 2, pageToken: "", status: "TASK_STATE_COMPLETED" }),
        rpc("CancelTask", { id: task }),
        rpc("SubscribeToTask", { id: task }),
        rpc("GetExtendedAgentCard", {}),
        rpc("CreateTaskPushNotificationConfig", { ...push, taskId: task }),
        rpc("SendMessage", {
          message,
          configuration: { ...(configuration as object), taskPushNotificationConfig: push },
        }),
        rpc("GetTaskPushNotificationConfig", { taskId: task, id: "1" }),
        rpc("ListTaskPushNotificationConfigs", { taskId: task }),
        rpc("DeleteTaskPushNotificationConfig", { taskId: task, id: "1" }),
      ],
      { "a2a-version": "1.0" },
    ),
    post("/a2a/{assistant_id}", assistant, [
      rpc("message/send", { message: former, configuration: { blocking: false } }),
      rpc("message/stream", { message: former }),
      rpc("tasks/get", { id: task, contextId: threadId, historyLength: 3 }),
      rpc("tasks/cancel", { id: task }),
      rpc("tasks/resubscribe", { id: task }),
      rpc("tasks/pushNotificationConfig/set", {
        taskId: task,
        pushNotificationConfig: formerPush,
      }),
      rpc("message/send", {
        message: former,
        configuration: { blocking: false, pushNotificationConfig: formerPush },
      }),
      rpc("tasks/pushNotificationConfig/get", { id: task, pushNotificationConfigId: "1" }),
      rpc("tasks/pushNotificationConfig/list", { id: task }),
      rpc("tasks/pushNotificationConfig/delete", { id: task, pushNotificationConfigId: "1" }),
      rpc("agent/getAuthenticatedExtendedCard", {}),
    ]),
  ];
};

const agui = (assistant: string, threadId: string): Operation[] => {
  const input: Json = {
    threadId,
    runId: "run-1",
    parentRunId: "run-0",
    state: { count: 1 },
    messages: [
      { id: "1", role: "user", content: "hello" },
      { id: "2", role: "assistant", content: "", toolCalls: [] },
      { id: "3", role: "user", content: [{ type: "text", text: "again" }] },
    ],
    tools: [{ name: "ask", description: "Asks", parameters: { type: "object" } }],
    context: [{ description: "where", value: "here" }],
    forwardedProps: { command: { resume: "yes" }, config: { configurable: {} } },
  };
  const resume: Json = [{ interruptId: "x", status: "resolved", payload: { yes: true } }];
  return [
    post("/agui/{assistant_id}", assistant, [
      { ...input, protocolVersion: "1.0" },
      { ...input, messages: [], protocolVersion: "1.0", resume },
      input,
      { ...input, forwardedProps: {} },
    ]),
  ];
};

/** Valid requests; `mutatedRequest` makes others of them. */
export const protocolOperations = (assistant: string, threadId: string): Operation[] => [
  ...mcp(assistant, threadId),
  ...a2a(assistant, threadId),
  ...agui(assistant, threadId),
];
