import { EventEmitter, once } from "node:events";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import WebSocket from "ws";
import { createBodyBudget } from "../../src/http/body-budget.ts";
import { createSocketIntake } from "../../src/http/socket-intake.ts";
import { newId } from "../../src/platform/lib/ids.ts";
import { PATIENTLY } from "../helpers/conditions.ts";
import { apiOf, saying } from "../helpers/api.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";

/** Unprocessed WebSocket messages have a limit over all clients, shared with request bodies. */

const MEGABYTE = 1_000_000;
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ bodyLimitBytes: MEGABYTE });
});
const sockets: WebSocket[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const socket of sockets.splice(0)) socket.terminate();
});
afterAll(() => server.close());

const aSocket = async (): Promise<WebSocket> => {
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/threads/${newId()}/stream/events`);
  sockets.push(socket);
  await once(socket, "open");
  return socket;
};
/** Whether the server answers a command over a new socket: then it has received the earlier messages of others. */
const answers = async (command: object): Promise<unknown> => {
  const socket = await aSocket();
  socket.send(JSON.stringify({ id: 1, ...command }));
  const [data] = (await once(socket, "message")) as [Buffer];
  socket.terminate();
  return (JSON.parse(String(data)) as { type: string }).type;
};
const postLarge = async (): Promise<number> => {
  const { status } = await apiOf(server).post(`/threads/${newId()}/runs/wait`, {
    assistant_id: "two-step",
    input: saying("x".repeat(200_000)),
    if_not_exists: "create",
  });
  return status;
};

test("clients with unfinished messages are disconnected when these are too large together, and no others are", async () => {
  const holders: WebSocket[] = [];
  const cut = vi.fn();
  for (let count = 0; count < 5; count += 1) {
    const socket = await aSocket();
    socket.on("close", cut);
    holders.push(socket);
    socket.send("x".repeat(0.9 * MEGABYTE), { fin: false });
  }
  await vi.waitUntil(() => cut.mock.calls.length > 0, PATIENTLY);
  expect(cut).toHaveBeenCalledTimes(1);
  expect(cut).toHaveBeenCalledWith(1006, Buffer.alloc(0));
  // Small messages have a budget of their own.
  expect(await answers({ method: "agent.getTree" })).toBe("error");
  for (const socket of holders) socket.terminate();
  await vi.waitUntil(async () => (await postLarge()) === 200, PATIENTLY);
});

test("an answered message no longer counts", async () => {
  const socket = await aSocket();
  const answered = vi.fn();
  socket.on("message", answered);
  for (let count = 1; count <= 8; count += 1) {
    socket.send(JSON.stringify({ id: count, method: "none", params: { text: "x".repeat(0.9 * MEGABYTE) } }));
    await vi.waitUntil(() => answered.mock.calls.length === count, PATIENTLY);
  }
});

test("a message must arrive whole within a minute; pings don't count", () => {
  vi.useFakeTimers();
  const socket = Object.assign(new EventEmitter(), { terminate: vi.fn() });
  const connection = new EventEmitter();
  const intake = createSocketIntake(createBodyBudget(MEGABYTE).open());
  intake.watch(socket as never, connection as never);
  const pong = (): void => {
    connection.emit("data", Buffer.alloc(10));
    socket.emit("pong", Buffer.alloc(4));
  };
  pong();
  vi.advanceTimersByTime(120_000);
  expect(socket.terminate).not.toHaveBeenCalled();
  connection.emit("data", Buffer.alloc(100));
  socket.emit("message");
  vi.advanceTimersByTime(120_000);
  expect(socket.terminate).not.toHaveBeenCalled();
  intake.release();
  connection.emit("data", Buffer.alloc(100));
  vi.advanceTimersByTime(30_000);
  pong();
  expect(socket.terminate).not.toHaveBeenCalled();
  vi.advanceTimersByTime(30_000);
  expect(socket.terminate).toHaveBeenCalledOnce();
});
