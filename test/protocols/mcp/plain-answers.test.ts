import { expect, test } from "vitest";
import { saying } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { query } from "../../helpers/query.ts";
import { onServer } from "../../helpers/servers.ts";
import { ask } from "./clients.ts";

let server: TestServer;
onServer({}, (opened) => ({ server } = opened));

const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
const call = {
  jsonrpc: "2.0",
  id: 2,
  method: "tools/call",
  params: { name: "two-step", arguments: saying("hi") },
};
const withProgress = { ...call, params: { ...call.params, _meta: { progressToken: "p" } } };

const send = async (body: unknown, headers: Record<string, string> = {}) => {
  const answer = await fetch(`${server.url}/mcp`, {
    method: "POST",
    headers: {
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      ...headers,
    },
    body: JSON.stringify(body),
  });
  return { status: answer.status, type: answer.headers.get("content-type"), text: await answer.text() };
};

test.each<[string, unknown]>([
  ["a list of tools", list],
  ["a call", call],
])("older revisions get %s as JSON", async (_what, message) => {
  const { status, type, text } = await send(message);
  expect([status, type]).toEqual([200, expect.stringMatching(/^application\/json/)]);
  expect(JSON.parse(text)).toMatchObject({ id: (message as typeof list).id, result: {} });
});

test("older revisions get the answers to a batch as an array, also if one of them is a refusal", async () => {
  const unknown = { ...call, id: 3, params: { name: "nonsense" } };
  const { text } = await send([list, call, unknown]);
  expect(JSON.parse(text)).toEqual([
    expect.objectContaining({ id: 1, result: expect.anything() }),
    expect.objectContaining({ id: 2, result: expect.anything() }),
    expect.objectContaining({ id: 3, error: expect.objectContaining({ code: -32_602 }) }),
  ]);
});

test("a call with progress gets a stream, and another one JSON", async () => {
  expect((await send(withProgress)).type).toBe("text/event-stream");
  const { params } = withProgress;
  const streamed = await ask(server.url, "tools/call", params);
  expect(streamed.headers.get("content-type")).toBe("text/event-stream");
  const plain = await ask(server.url, "tools/call", call.params);
  expect(plain.headers.get("content-type")).toMatch(/^application\/json/);
  expect(plain.message.result).toMatchObject({ content: [{ text: "second" }] });
});

test.each<[string, unknown, number]>([
  ["a notification", { jsonrpc: "2.0", method: "notifications/initialized" }, 202],
  ["null", null, 400],
  ["no message of JSON-RPC", { constructor: 1 }, 400],
  ["an empty batch", [], 400],
])("%s has its status", async (_what, body, expected) => {
  expect((await send(body)).status).toBe(expected);
});

test("a request without a body is the caller's mistake", async () => {
  const { status } = await fetch(`${server.url}/mcp`, { method: "POST" });
  expect([400, 415]).toContain(status);
});

test.each<[string, object, Record<string, string>]>([
  ["another name", {}, { "mcp-name": "approval" }],
  ["another method", {}, { "mcp-method": "tools/list" }],
  ["another revision", {}, { "mcp-protocol-version": "2025-11-25" }],
  ["no object as arguments", { arguments: [] }, {}],
  ["capabilities of a wrong type", { _meta: { "io.modelcontextprotocol/clientCapabilities": 5 } }, {}],
  ["a client without a version", { _meta: { "io.modelcontextprotocol/clientInfo": { name: "x" } } }, {}],
])("a call is refused for %s", async (_what, params, headers) => {
  const { status, message } = await ask(server.url, "tools/call", { ...call.params, ...params }, { headers });
  expect([status, message.error === undefined]).toEqual([expect.any(Number), false]);
  expect(message.error?.code).not.toBe(-32_603);
});

test("a tool with the name of a graph without an own assistant is the assistant with this name", async () => {
  const asked = { name: "ten-steps", arguments: saying("hi") };
  await query(server, "delete from threadloom.assistants where name = $1", [asked.name]);
  const { message: refused } = await ask(server.url, "tools/call", asked);
  expect(refused.error).toEqual({ code: -32_602, message: "There is no tool 'ten-steps'." });
  await server.client.post("/assistants").send({ graph_id: "two-step", name: "ten-steps" });
  const { message } = await ask(server.url, "tools/call", asked);
  expect(message.result).toMatchObject({ content: [{ text: "second" }] });
});
