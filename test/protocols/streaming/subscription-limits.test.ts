import { afterAll, beforeAll, expect, test } from "vitest";
import WebSocket from "ws";
import { newId } from "../../../src/platform/lib/ids.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";

/** Subscriptions over WebSockets count for the caller's limit of open streams. */

const HEADERS = { "x-api-key": "a" };
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ apiKeys: ["a"], keyFactor: 1, streamsPerCaller: 3 });
});
afterAll(() => server.close());

interface Answer {
  id: number;
  type: string;
  message?: string;
  result?: { subscription_id: string };
}

const opened = async () => {
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/threads/${newId()}/stream/events`, {
    headers: HEADERS,
  });
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  let id = 0;
  return {
    close: () => socket.terminate(),
    async ask(method: string, params: object): Promise<Answer> {
      id += 1;
      socket.send(JSON.stringify({ id, method, params }));
      return await new Promise((resolve) =>
        socket.once("message", (data) => resolve(JSON.parse(String(data as Buffer)) as Answer)),
      );
    },
  };
};
const VALUES = { channels: ["values"] };
const openStreams = async (): Promise<number> => {
  const answer = await fetch(`${server.url}/metrics?format=json`, { headers: HEADERS });
  return ((await answer.json()) as { limits: { open_streams: number } }).limits.open_streams;
};

test("one subscription too many is refused, an ended one frees its place, and a closed socket those of all its own", async () => {
  const socket = await opened();
  const first = await socket.ask("subscription.subscribe", VALUES);
  expect(await socket.ask("subscription.subscribe", VALUES)).toMatchObject({ type: "success" });
  expect(await socket.ask("subscription.subscribe", VALUES)).toMatchObject({
    type: "error",
    message: expect.stringContaining("At most 3 streams"),
  });
  expect(await openStreams()).toBe(3);
  await socket.ask("subscription.unsubscribe", first.result ?? {});
  expect(await openStreams()).toBe(2);
  expect((await socket.ask("subscription.subscribe", VALUES)).type).toBe("success");
  socket.close();
  await expect.poll(openStreams).toBe(0);
});
