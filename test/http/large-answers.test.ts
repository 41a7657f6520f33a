import { connect, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startTestServer } from "../helpers/app.ts";

/** Answers of many megabytes, each built as a whole, to callers that do not read them. */

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

const aLargeThread = async (): Promise<string> => {
  const { body } = await server.client.post("/threads").send({});
  const ran = await server.client.post(`/threads/${body.thread_id}/runs/wait`).send({
    assistant_id: "agent",
    input: { messages: [{ role: "user", content: "x".repeat(MEGABYTES * 1024 * 1024) }] },
  });
  expect(ran.status).toBe(200);
  return body.thread_id;
};

/** Eighty callers request a state and do not read it. Resolves when no further answer begins. */
const fillTheRoom = async (threadId: string): Promise<number> => {
  const { hostname, port } = new URL(server.url);
  let begun = 0;
  for (let count = 0; count < READERS; count += 1) {
    const socket = connect(Number(port), hostname);
    socket.on("error", () => undefined);
    // Reads the first piece, and then nothing more.
    socket.once("data", () => {
      begun += 1;
      socket.pause();
    });
    socket.write(`GET /threads/${threadId}/state HTTP/1.1\r\nhost: ${hostname}:${port}\r\n\r\n`);
    sockets.push(socket);
  }
  for (let before = -1; before !== begun || begun === 0;) {
    before = begun;
    await pause(1_000);
  }
  return begun;
};

test("are built one after the other for callers that read them, and none is refused", async () => {
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

test("are built only for as many callers as there is room for; others wait", async () => {
  const threadId = await aLargeThread();
  expect(await fillTheRoom(threadId)).toBeLessThan(READERS / 2);
  let isAnswered = false;
  const waiting = fetch(`${server.url}/threads/${threadId}/state`).then(async (answer) => {
    isAnswered = true;
    await answer.text();
    return answer.status;
  });
  expect((await server.client.get("/ok")).status).toBe(200);
  expect(isAnswered).toBe(false);
  for (const socket of sockets.splice(0)) socket.destroy();
  expect(await waiting).toBe(200);
});
