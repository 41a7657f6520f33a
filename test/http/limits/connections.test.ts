import { connect, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import type { ConnectionLimits } from "../../../src/http/open-answers.ts";
import { eventually } from "../../helpers/conditions.ts";
import { aBareApp } from "../../helpers/parts.ts";

/** Connections that are slow, send nothing, or read nothing. */

const ANSWER = "x".repeat(60_000);

let app: Awaited<ReturnType<typeof aBareApp>>["app"];
let sockets: Socket[];

const serve = async (limits: Partial<ConnectionLimits>): Promise<number> => {
  sockets = [];
  const server = await aBareApp({
    connectionLimits: limits,
    routes: [
      async (routes) => {
        routes.get("/small", () => ({ answer: ANSWER }));
        routes.post("/body", (request) => ({ took: request.body !== undefined }));
      },
    ],
  });
  app = server.app;
  return Number(new URL(await app.listen({ host: "127.0.0.1", port: 0 })).port);
};
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await app.close();
});

const open = async (port: number, text = ""): Promise<Socket & { logged: () => string }> =>
  await new Promise((resolve, reject) => {
    let logged = "";
    const socket = connect(port, "127.0.0.1", () => {
      if (text !== "") socket.write(text);
      resolve(Object.assign(socket, { logged: () => logged }));
    });
    sockets.push(socket);
    socket.on("data", (chunk) => (logged += chunk.toString()));
    socket.on("error", reject);
  });

const HEADER = "GET /small HTTP/1.1\r\nHost: localhost\r\n";
const BODY =
  "POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n";

test("a client that sends nothing, or sends headers or a body drop by drop, is disconnected when the time is over", async () => {
  const port = await serve({ headersMs: 300, requestMs: 600 });
  const silent = await open(port);
  const slowHeader = await open(port, HEADER);
  const slowBody = await open(port, BODY);
  const drops = setInterval(() => {
    for (const socket of [slowHeader, slowBody]) if (socket.writable) socket.write("x");
  }, 20);
  try {
    await eventually("all are closed", () => [silent, slowHeader, slowBody].every(({ closed }) => closed));
    expect(slowHeader.logged()).toContain("408 Request Timeout");
    expect(slowBody.logged()).toContain('{"detail":"The request did not arrive whole in time."}');
  } finally {
    clearInterval(drops);
  }
});

test("a client that does not read its answer is disconnected, with all requests behind it", async () => {
  const port = await serve({ answerTakenMs: 400 });
  const socket = await open(port);
  socket.pause();
  socket.write(`${HEADER}\r\n`.repeat(300));
  const connections = (): Promise<number> =>
    new Promise((resolve) => app.server.getConnections((_error, count) => resolve(count)));
  await eventually("the server has closed it", async () => (await connections()) === 0);
});

test("a client that reads the answers one after the other keeps the connection", async () => {
  const port = await serve({ answerTakenMs: 200 });
  const socket = await open(port);
  for (const answers of [1, 2, 3, 4, 5]) {
    socket.write(`${HEADER}\r\n`);
    await eventually("the answer has come", () => socket.logged().split("200 OK").length === answers + 1);
  }
  expect(socket.closed).toBe(false);
});

test("connections beyond the maximum are closed at once", async () => {
  const port = await serve({ atMost: 10 });
  const opened = await Promise.all(Array.from({ length: 12 }, () => open(port)));
  await eventually("two are closed", () => opened.filter(({ closed }) => closed).length === 2);
});

test("a request for another protocol before the last answer ends its connection", async () => {
  const port = await serve({});
  const upgrade = `${HEADER}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n`;
  const one = await open(port, upgrade);
  await eventually("it is answered", () => one.logged().includes("200 OK"));
  one.write(upgrade);
  await eventually("the next one, too", () => one.logged().split("200 OK").length === 3);

  const many = await open(port, upgrade.repeat(2_000));
  await eventually("it is closed", () => many.closed);
});
