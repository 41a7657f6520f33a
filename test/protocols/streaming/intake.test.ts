import { createBodyRoom } from "../../../src/http/bodies.ts";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { connect, type Socket } from "node:net";
import { randomBytes } from "node:crypto";
import { afterEach, expect, test, vi } from "vitest";
import { WebSocketServer, type WebSocket } from "ws";
import { ANONYMOUS } from "../../../src/access/caller.ts";
import { createReadRoom } from "../../../src/http/large-answers.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import type { JsonObject } from "../../../src/platform/lib/json.ts";
import { serveSession, type SessionParts } from "../../../src/protocols/streaming/sockets/session.ts";
import { PATIENTLY } from "../../helpers/conditions.ts";

/** How much a server buffers of a client that sends commands faster than it can answer them. */

const open: (WebSocketServer | Socket)[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const one of open.splice(0))
    if ("destroy" in one) one.destroy();
    else one.close();
});

/** A client's message as one frame; a mask of zeros leaves its text unchanged. */
const toFrame = (text: string): Buffer =>
  Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)]);

/** A session whose commands are answered when the test says so, and its client's end of the connection. */
const aSession = async (result: JsonObject = {}) => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  open.push(server);
  await once(server, "listening");
  const answers: (() => void)[] = [];
  const readRoom = createReadRoom(1_000_000);
  const service = {
    command: async () => {
      await new Promise<void>((resolve) => answers.push(resolve));
      return { type: "success", id: 1, result };
    },
    addSocket: () => () => undefined,
    readRoom,
  } as unknown as SessionParts["service"];
  const connected = once(server, "connection");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  open.push(client);
  client.resume();
  client.write(
    "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
      `Sec-WebSocket-Key: ${randomBytes(16).toString("base64")}\r\n\r\n`,
  );
  const [socket, request] = (await connected) as [WebSocket, IncomingMessage];
  const onFault = vi.fn();
  serveSession(socket, {
    connection: request.socket,
    service,
    holdAccess: () => ({ signal: new AbortController().signal, caller: ANONYMOUS, release: () => undefined }),
    readAccess: { threadId: newId() } as SessionParts["readAccess"],
    headers: undefined,
    elementsAtMost: 100,
    bodies: createBodyRoom(),
    spend: () => undefined,
    openStream: () => () => undefined,
    onFault,
  });
  return { client, socket, answers, onFault, readRoom };
};

test("the server reads no more before all commands of one piece are answered", async () => {
  const { client, socket, answers, onFault } = await aSession();
  const message = toFrame(JSON.stringify({ id: 1, method: "any" }));
  client.write(Buffer.concat([message, message, message]));
  for (const answered of [0, 1, 2]) {
    await vi.waitUntil(() => answers.length === answered + 1, PATIENTLY);
    expect(socket.isPaused).toBe(true);
    answers[answered]?.();
  }
  await vi.waitUntil(() => !socket.isPaused, PATIENTLY);
  expect(onFault).not.toHaveBeenCalled();
});

test("a client does not count as gone during its command, and does if it answers no ping afterwards", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const { client, socket, answers } = await aSession();
  client.write(toFrame(JSON.stringify({ id: 1, method: "any" })));
  await vi.waitUntil(() => answers.length === 1, PATIENTLY);
  vi.advanceTimersByTime(100_000);
  expect(socket.readyState).toBe(socket.OPEN);
  answers[0]?.();
  await vi.waitUntil(() => !socket.isPaused, PATIENTLY);
  vi.advanceTimersByTime(40_000);
  await vi.waitUntil(() => socket.readyState === socket.CLOSED, PATIENTLY);
});

test("a client that does not finish a message is cut off after a minute, even if it answers pings", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const { client, socket } = await aSession();
  const pong = Buffer.from([0x8a, 0x80, 0, 0, 0, 0]);
  const later = async (parts: Buffer): Promise<void> => {
    const ponged = once(socket, "pong");
    vi.advanceTimersByTime(20_000);
    client.write(Buffer.concat([parts, pong]));
    await ponged;
  };
  const nothing = Buffer.alloc(0);
  for (let minutes = 0; minutes < 6; minutes += 1) await later(nothing);
  const unfinished = Buffer.concat([Buffer.from([0x01, 0x80 | 5, 0, 0, 0, 0]), Buffer.from("begin")]);
  await later(unfinished);
  for (const _ of [20, 40, 60]) await later(nothing);
  expect(socket.readyState).toBe(socket.OPEN);
  vi.advanceTimersByTime(20_000);
  await vi.waitUntil(() => socket.readyState === socket.CLOSED, PATIENTLY);
});

test("a large answer counts as unread until its client has taken it", async () => {
  const { client, answers, readRoom } = await aSession({ values: "x".repeat(32_000_000) });
  client.pause();
  client.write(toFrame(JSON.stringify({ id: 1, method: "any" })));
  await vi.waitUntil(() => answers.length === 1, PATIENTLY);
  expect(readRoom.isOverfull(ANONYMOUS)).toBe(false);
  answers[0]?.();
  await vi.waitUntil(() => readRoom.isOverfull(ANONYMOUS), PATIENTLY);
  client.resume();
  await vi.waitUntil(() => !readRoom.isOverfull(ANONYMOUS), PATIENTLY);
});

test("a large answer to a client that has left counts no longer", async () => {
  const { client, answers, readRoom } = await aSession({ values: "x".repeat(32_000_000) });
  client.pause();
  client.write(toFrame(JSON.stringify({ id: 1, method: "any" })));
  await vi.waitUntil(() => answers.length === 1, PATIENTLY);
  answers[0]?.();
  await vi.waitUntil(() => readRoom.isOverfull(ANONYMOUS), PATIENTLY);
  client.destroy();
  await vi.waitUntil(() => !readRoom.isOverfull(ANONYMOUS), PATIENTLY);
});
