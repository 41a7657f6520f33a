import { Client, StreamableHTTPClientTransport, type ClientCapabilities } from "@modelcontextprotocol/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { onTestFinished } from "vitest";

const INFO = { name: "test", version: "1.0.0" };
export const NEWEST = "2026-07-28";

export interface ClientOptions {
  capabilities?: ClientCapabilities;
  headers?: Record<string, string>;
}

/** The official client in the newest revision. */
export const newClient = async (
  url: string,
  { capabilities = {}, headers = {} }: ClientOptions = {},
): Promise<Client> => {
  const client = new Client(INFO, { capabilities, versionNegotiation: { mode: { pin: NEWEST } } });
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }),
  );
  onTestFinished(() => client.close());
  return client;
};

/** The official client of the first line, which speaks the older revisions. */
export const oldClient = async (url: string, { headers = {} }: ClientOptions = {}): Promise<OldClient> => {
  const client = new OldClient(INFO);
  // Its optional members lack `undefined`.
  await client.connect(new OldTransport(new URL(`${url}/mcp`), { requestInit: { headers } }) as never);
  onTestFinished(() => client.close());
  return client;
};

export interface Message {
  result?: Record<string, unknown>;
  error?: { code: number; message: string; data?: unknown };
}

export interface Answer {
  status: number;
  headers: Headers;
  message: Message;
}

const messageIn = (text: string): Message => {
  const data = text.split("\n").findLast((line) => line.startsWith("data: "));
  return JSON.parse(data?.slice("data: ".length) ?? text) as Message;
};

/** A request of the newest revision, written by hand. `name`: of the header. */
export const ask = async (
  url: string,
  method: string,
  params: Record<string, unknown> = {},
  { capabilities = {}, headers = {}, signal }: ClientOptions & { signal?: AbortSignal | undefined } = {},
): Promise<Answer> => {
  const name = params["name"] ?? params["taskId"];
  const response = await fetch(`${url}/mcp`, {
    method: "POST",
    headers: {
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      "mcp-protocol-version": NEWEST,
      "mcp-method": method,
      ...(typeof name === "string" ? { "mcp-name": name } : {}),
      ...headers,
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          "io.modelcontextprotocol/protocolVersion": NEWEST,
          "io.modelcontextprotocol/clientInfo": INFO,
          "io.modelcontextprotocol/clientCapabilities": capabilities,
          ...(params["_meta"] as object | undefined),
        },
      },
    }),
    ...(signal === undefined ? {} : { signal }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, message: text === "" ? {} : messageIn(text) };
};

export const WITH_FORMS = { elicitation: { form: {} } };
export const WITH_TASKS = { extensions: { "io.modelcontextprotocol/tasks": {} } };
