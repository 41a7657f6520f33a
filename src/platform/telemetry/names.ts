/**
 * All names that leave the server by OpenTelemetry. `gen_ai.*`: semantic conventions for generative AI 0.1.0, which are "in
 * development"; `http.*`, `url.*` and `error.*`: semantic conventions 1.45.0. `threadloom.*`: the field has no name.
 */

export const SCOPE = "threadloom";

export const SPANS = {
  request: (method: string, route: string) => `${method} ${route}`,
  creation: "create_run",
  attempt: (graphId: string) => `invoke_agent ${graphId}`,
  node: (name: string) => `node ${name}`,
  model: (name: string) => `chat ${name}`,
  tool: (name: string) => `execute_tool ${name}`,
} as const;

/** Values of `operation`. */
export const OPERATIONS = { attempt: "invoke_agent", model: "chat", tool: "execute_tool" } as const;

export const ATTRIBUTES = {
  operation: "gen_ai.operation.name",
  provider: "gen_ai.provider.name",
  agent: "gen_ai.agent.name",
  agentId: "gen_ai.agent.id",
  conversation: "gen_ai.conversation.id",
  requestModel: "gen_ai.request.model",
  responseModel: "gen_ai.response.model",
  finishReasons: "gen_ai.response.finish_reasons",
  timeToFirstToken: "gen_ai.response.time_to_first_chunk",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  cacheReadTokens: "gen_ai.usage.cache_read.input_tokens",
  cacheCreationTokens: "gen_ai.usage.cache_creation.input_tokens",
  reasoningTokens: "gen_ai.usage.reasoning.output_tokens",
  tokenType: "gen_ai.token.type",
  tool: "gen_ai.tool.name",
  toolCallId: "gen_ai.tool.call.id",
  // Contents
  inputMessages: "gen_ai.input.messages",
  outputMessages: "gen_ai.output.messages",
  toolArguments: "gen_ai.tool.call.arguments",
  toolResult: "gen_ai.tool.call.result",

  method: "http.request.method",
  route: "http.route",
  statusCode: "http.response.status_code",
  path: "url.path",
  errorType: "error.type",

  run: "threadloom.run.id",
  attempt: "threadloom.run.attempt",
  status: "threadloom.run.status",
  queueSeconds: "threadloom.run.queue_time",
  node: "threadloom.node.name",
  interrupted: "threadloom.interrupted",
  requestId: "threadloom.request.id",
} as const;

/** In seconds, except `tokens`. */
export const INSTRUMENTS = {
  modelTime: "gen_ai.client.operation.duration",
  tokens: "gen_ai.client.token.usage",
  attemptTime: "gen_ai.invoke_agent.duration",
  toolTime: "gen_ai.execute_tool.duration",
  requestTime: "http.server.request.duration",
  queueTime: "threadloom.run.queue_time",
} as const;

/** Of the GenAI conventions: 0.01 s, doubled to 81.92 s. */
export const SECONDS_BUCKETS: readonly number[] = Array.from({ length: 14 }, (_, power) => 0.01 * 2 ** power);
/** Of the GenAI conventions: powers of 4. */
export const TOKENS_BUCKETS: readonly number[] = Array.from({ length: 14 }, (_, power) => 4 ** power);
