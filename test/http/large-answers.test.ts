import { createResponseBudget } from "../../src/http/response-budget.ts";
import { connect, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { startTestServer } from "../helpers/app.ts";
import { eventually } from "../helpers/conditions.ts";

/** Answers of many megabytes, each built as a whole, to callers that do not read them. */

const MEGABYTES = 3;
const READERS = 80;

let server: Awaited<ReturnType<typeof startTestServer>>;
const sockets: Socket[] = [];
const start = async (waitMs: number): Promise<void> => {
  server = await startTestServer({ responseBudget: createResponseBudget({ waitMs }) });
};
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server.close();
});

const aLargeThread = async (): Promise<string> => {
  const { body } = await server.client.post("/threads").send({});
  const ran = await server.client.post(`/threads/${body.thread_id}/runs/wait`).send({
    assistant_id: "agent",
    input: { messages: [{ role: "user", content: "x".repeat(MEGABYTES * 1024 * 1024) }] },
  });
  expect(ran.status).toBe(200);
  return body.thread_id;
};

/** Eighty callers request a state and do not read it; returns the first line of each answer. */
const fillTheRoom = async (threadId: string): Promise<string[]> => {
  const { hostname, port } = new URL(server.url);
  const answers: string[] = [];
  for (let count = 0; count < READERS; count += 1) {
    const socket = connect(Number(port), hostname);
    socket.on("error", () => undefined);
    // Reads the first piece, and then nothing more.
    socket.once("data", (piece: Buffer) => {
      answers.push(piece.toString("latin1").split("\r\n", 1)[0] ?? "");
      socket.pause();
    });
    socket.write(`GET /threads/${threadId}/state HTTP/1.1\r\nhost: ${hostname}:${port}\r\n\r\n`);
    sockets.push(socket);
  }
  await eventually("all have an answer", () => answers.length === READERS);
  return answers;
};

test("are built one after the other for callers that read them, and none is refused", async () => {
  await start(60_000);
  const threadId = await aLargeThread();
  const paths = [`/threads/${threadId}/state`, `/threads/${threadId}`];
  const lengths = await Promise.all(
    Array.from({ length: 40 }, async (_, index) => {
      const answer = await fetch(`${server.url}${paths[index % 2]}`);
      expect(answer.status).toBe(200);
      return (await answer.text()).length;
    }),
  );
  for (const length of lengths) expect(length).toBeGreaterThan(MEGABYTES * 1024 * 1024);
});

test("cause no warning about listeners, whether they are a result, a state or a history", async () => {
  await start(60_000);
  const warnings: string[] = [];
  const receive = ({ message }: Error) => void warnings.push(message);
  process.on("warning", receive);
  try {
    const threadId = await aLargeThread();
    await (await fetch(`${server.url}/threads/${threadId}/state`)).text();
    await (await fetch(`${server.url}/threads/${threadId}/history`)).text();
    expect(warnings).toEqual([]);
  } finally {
    process.off("warning", receive);
  }
});

test("wait for room as long as needed if the thread was changed, and are then built", async () => {
  await start(500);
  const threadId = await aLargeThread();
  await fillTheRoom(threadId);
  const patched = server.client
    .patch(`/threads/${threadId}`)
    .send({ metadata: { a: 1 } })
    .then(({ status }) => status);
  await eventually("a read that came after it is refused", async () => {
    return (await server.client.get(`/threads/${threadId}/state`)).status === 503;
  });
  for (const socket of sockets.splice(0)) socket.destroy();
  expect(await patched).toBe(200);
});

test("are built only for as many callers as there is room for; others may retry", async () => {
  await start(500);
  const threadId = await aLargeThread();
  const answers = await fillTheRoom(threadId);
  expect(answers).toContain("HTTP/1.1 200 OK");
  expect(answers).toContain("HTTP/1.1 503 Service Unavailable");
  const refused = await server.client.get(`/threads/${threadId}/state`);
  expect(refused.status).toBe(503);
  expect(refused.body).toEqual({ detail: "Too many large answers are being sent at the moment." });
  expect(refused.headers["retry-after"]).toMatch(/^\d+$/);
  expect((await server.client.get("/ok")).status).toBe(200);

  for (const socket of sockets.splice(0)) socket.destroy();
  await eventually("there is room again", async () => {
    return (await server.client.get(`/threads/${threadId}/state`)).status === 200;
  });
});
