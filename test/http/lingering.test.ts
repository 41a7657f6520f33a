import { connect, type Socket } from "node:net";
import { Client } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bodyOf, jsonValue, optional } from "../../src/platform/domain/json-schemas.ts";
import { aBareApp } from "../helpers/parts.ts";

/** The answer to clients whose body is too large, while they still send it. */

const MEGABYTE = 1024 * 1024;
const BODY_LIMIT = MEGABYTE;
/** Far more than the buffers at both ends of a connection. */
const SENT_BYTES = 128 * MEGABYTE;
const SENTENCE = "The body is larger than 1.05 MB, the most that this route takes.";

let url: string;
let stop: () => Promise<void>;
beforeAll(async () => {
  const { app } = await aBareApp({
    bodyLimit: BODY_LIMIT,
    routes: [
      async (routes) => {
        routes.post(
          "/runs",
          { config: { largeBody: true }, schema: { body: bodyOf({ input: optional(jsonValue) }) } },
          async () => ({}),
        );
      },
    ],
  });
  url = await app.listen({ host: "127.0.0.1", port: 0 });
  stop = async () => await app.close();
});
afterAll(async () => {
  await stop();
});

const chunk = Buffer.alloc(MEGABYTE, "x");

test("fetch reads the error, announced or not, and reuses its connections", async () => {
  const text = `{"input":"${"x".repeat(SENT_BYTES)}"}`;
  const announced = await fetch(`${url}/runs`, { method: "POST", body: text });
  expect([announced.status, await announced.json()]).toEqual([413, { detail: SENTENCE }]);
  let left = SENT_BYTES / MEGABYTE;
  const body = new ReadableStream({
    pull(controller) {
      if (left-- > 0) controller.enqueue(chunk);
      else controller.close();
    },
  });
  const request = { method: "POST", body, duplex: "half" };
  const unannounced = await fetch(`${url}/runs`, request as RequestInit);
  expect([unannounced.status, await unannounced.json()]).toEqual([413, { detail: SENTENCE }]);
  expect((await fetch(`${url}/runs`, { method: "POST", body: "{}" })).status).toBe(200);
});

test("the official client shows the error", async () => {
  const client = new Client({ apiUrl: url, callerOptions: { maxRetries: 0 } });
  const run = client.runs.create(null as unknown as string, "agent", {
    input: { text: "x".repeat(SENT_BYTES) },
  });
  await expect(run).rejects.toThrow(SENTENCE);
});

/** Sends pieces of a body until all are accepted or the connection is closed, and reads nothing meanwhile. Returns the number of bytes. */
const sendBody = async (socket: Socket, bytes: number): Promise<number> => {
  let isClosed = false;
  let wake: () => void = () => undefined;
  socket.on("error", () => undefined).on("drain", () => wake());
  socket.once("close", () => {
    isClosed = true;
    wake();
  });
  let sent = 0;
  for (; sent < bytes && !isClosed; sent += chunk.length)
    if (!socket.write(chunk)) await new Promise<void>((resolve) => (wake = resolve));
  return sent;
};

const begin = (bytes: number): Socket => {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(
    `POST /runs HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\nContent-Length: ${bytes}\r\n\r\n`,
  );
  return socket;
};

test("a client that reads only after sending everything reads the error, too", async () => {
  const socket = begin(SENT_BYTES);
  expect(await sendBody(socket, SENT_BYTES)).toBe(SENT_BYTES);
  let read = "";
  for await (const piece of socket) read += String(piece);
  expect(read).toMatch(/^HTTP\/1\.1 413 [^]*\r\nconnection: close\r\n/i);
  expect(read).toContain(SENTENCE);
});

test("a client that sends endlessly is disconnected", async () => {
  const socket = begin(100_000 * MEGABYTE);
  socket.resume();
  expect(await sendBody(socket, 100_000 * MEGABYTE)).toBeLessThan(400 * MEGABYTE);
});
