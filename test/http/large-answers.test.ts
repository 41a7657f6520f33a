import { connect, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startTestServer } from "../helpers/app.ts";
import { eventually } from "../helpers/conditions.ts";

/** Answers of many megabytes, each made as a whole, to callers who take nothing of them. */

const MEGABYTES = 3;
const READERS = 80;

let server: Awaited<ReturnType<typeof startTestServer>>;
const sockets: Socket[] = [];
beforeEach(async () => {
  server = await startTestServer();
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server.close();
});

test("are not made for more callers than there is room for; who comes then may come again", async () => {
  const { body } = await server.client.post("/threads").send({});
  const ran = await server.client.post(`/threads/${body.thread_id}/runs/wait`).send({
    assistant_id: "agent",
    input: { messages: [{ role: "user", content: "x".repeat(MEGABYTES * 1024 * 1024) }] },
  });
  expect(ran.status).toBe(200);
  const { hostname, port } = new URL(server.url);
  const answers: string[] = [];
  for (let count = 0; count < READERS; count += 1) {
    const socket = connect(Number(port), hostname);
    socket.on("error", () => undefined);
    // The first piece is read, then nothing more is.
    socket.once("data", (piece: Buffer) => {
      answers.push(piece.toString("latin1").split("\r\n", 1)[0] ?? "");
      socket.pause();
    });
    socket.write(`GET /threads/${body.thread_id}/state HTTP/1.1\r\nhost: ${hostname}:${port}\r\n\r\n`);
    sockets.push(socket);
  }
  await eventually("all have an answer", () => answers.length === READERS);
  expect(answers).toContain("HTTP/1.1 200 OK");
  expect(answers).toContain("HTTP/1.1 503 Service Unavailable");
  const refused = await server.client.get(`/threads/${body.thread_id}/state`);
  expect(refused.status).toBe(503);
  expect(refused.body).toEqual({ detail: "Too many large answers are being sent at the moment." });
  expect(refused.headers["retry-after"]).toMatch(/^\d+$/);
  expect((await server.client.get("/ok")).status).toBe(200);

  for (const socket of sockets.splice(0)) socket.destroy();
  await eventually("there is room again", async () => {
    return (await server.client.get(`/threads/${body.thread_id}/state`)).status === 200;
  });
});
