import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

/** The tested parts of a chat completions request. */
export interface ChatRequest {
  model: string;
  stream?: boolean;
  stream_options?: { include_usage?: boolean };
  messages: { role: string; content: string | null; tool_call_id?: string }[];
  tools?: { function: { name: string } }[];
}

/** The answer of the test's model: text, tool calls, or a refusal. */
export type ChatAnswer =
  | { content: string }
  | { toolCalls: { id: string; name: string; args: Record<string, unknown> }[] }
  | { status: number; message: string };

export interface OpenAiServer {
  /** For `OPENAI_BASE_URL`. */
  baseUrl: string;
  /** Every request so far, with its key. */
  requests: (ChatRequest & { key: string | undefined })[];
  /** The number of streams that the client left before their end. */
  readonly abandoned: number;
  close(): Promise<void>;
}

/**
 * A local server with OpenAI's chat completions, including streaming (words one by one, the arguments of a tool call in pieces, usage,
 * `[DONE]`). It tests a provider's real client without a key or the network.
 */
export async function createOpenAiServer(
  answer: (request: ChatRequest) => ChatAnswer,
  { tokenDelayMs = 0 }: { tokenDelayMs?: number } = {},
): Promise<OpenAiServer> {
  const requests: OpenAiServer["requests"] = [];
  let abandoned = 0;

  const handle = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (incoming.method !== "POST" || incoming.url !== "/v1/chat/completions") {
      sendJson(response, 404, { error: { message: `No route ${incoming.method} ${incoming.url}.` } });
      return;
    }
    const request = JSON.parse(await textOf(incoming)) as ChatRequest;
    requests.push({ ...request, key: incoming.headers.authorization?.replace(/^Bearer /, "") });
    // The id of an answer becomes the id of the message, so it has to be unique.
    const id = `chatcmpl-${requests.length}`;
    const given = answer(request);
    if ("status" in given) {
      sendJson(response, given.status, { error: { message: given.message, type: "invalid_request_error" } });
    } else if (request.stream) {
      response.on("close", () => {
        if (!response.writableEnded) abandoned += 1;
      });
      await sendStream(response, id, request, given, tokenDelayMs);
    } else {
      sendJson(response, 200, completion(id, request, given));
    }
  };

  const server = createServer((incoming, response) => {
    handle(incoming, response).catch((error: unknown) => response.destroy(error as Error));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;

  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    get abandoned() {
      return abandoned;
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

type GoodAnswer = Exclude<ChatAnswer, { status: number }>;

const USAGE = { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 };
const finishReason = (answer: GoodAnswer) => ("toolCalls" in answer ? "tool_calls" : "stop");

function completion(id: string, { model }: ChatRequest, answer: GoodAnswer): unknown {
  const message =
    "toolCalls" in answer
      ? {
          role: "assistant",
          content: null,
          tool_calls: answer.toolCalls.map(({ id: callId, name, args }) => ({
            id: callId,
            type: "function",
            function: { name, arguments: JSON.stringify(args) },
          })),
        }
      : { role: "assistant", content: answer.content };
  const choices = [{ index: 0, message, finish_reason: finishReason(answer) }];
  return { id, object: "chat.completion", created: 0, model, choices, usage: USAGE };
}

async function sendStream(
  response: ServerResponse,
  id: string,
  { model, stream_options }: ChatRequest,
  answer: GoodAnswer,
  tokenDelayMs: number,
): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = async (choices: unknown[], usage: unknown = null): Promise<void> => {
    if (response.destroyed) return;
    const chunk = { id, object: "chat.completion.chunk", created: 0, model, choices, usage };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    if (tokenDelayMs > 0) await pause(tokenDelayMs);
  };
  const delta = (part: unknown) => send([{ index: 0, delta: part, finish_reason: null }]);

  await delta({ role: "assistant", content: "toolCalls" in answer ? null : "" });
  if ("toolCalls" in answer) {
    for (const [index, { id: callId, name, args }] of answer.toolCalls.entries()) {
      await delta({
        tool_calls: [{ index, id: callId, type: "function", function: { name, arguments: "" } }],
      });
      for (const piece of JSON.stringify(args).match(/.{1,4}/gs) ?? []) {
        await delta({ tool_calls: [{ index, function: { arguments: piece } }] });
      }
    }
  } else {
    for (const token of answer.content.split(/(?<=\s)/)) await delta({ content: token });
  }
  await send([{ index: 0, delta: {}, finish_reason: finishReason(answer) }]);
  if (stream_options?.include_usage) await send([], USAGE);
  if (!response.destroyed) response.end("data: [DONE]\n\n");
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
