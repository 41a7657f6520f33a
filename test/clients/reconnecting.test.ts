import type { Client } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { feature } from "../compatibility/feature.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { startCuttingProxy, type CuttingProxy } from "../helpers/cutting-proxy.ts";
import { columnOf, LINES, load, type SdkLine } from "./lines.ts";

let server: TestServer;
const proxies: CuttingProxy[] = [];
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => {
  for (const proxy of proxies) await proxy.close();
  await server.close();
});

interface StreamEvent {
  id?: string;
  event: string;
  data: unknown;
}

const clientOf = async (line: SdkLine, url: string): Promise<Client> =>
  new (await load(line)).Client({ apiUrl: url });
const aCutClient = async (line: SdkLine): Promise<{ client: Client; proxy: CuttingProxy }> => {
  const proxy = await startCuttingProxy(server);
  proxies.push(proxy);
  return { client: await clientOf(line, proxy.url), proxy };
};
const inOrder = (events: readonly { id?: string }[]): void =>
  expect(events.map(({ id }) => id)).toEqual(events.map((_, index) => String(index)));

// Concurrent, because the SDK waits a second or two before it reconnects, and a heartbeat comes after five.
describe.concurrent.each(LINES)("SDK $version", (line) => {
  const test = (row: string, body: () => Promise<void>): void =>
    feature({ table: "Run streams whose connection is cut", row, column: columnOf(line) }, body);

  for (const streamResumable of [false, true])
    test(`continues at its position, misses nothing and repeats nothing (${streamResumable ? "" : "not "}resumable)`, async () => {
      const { client, proxy } = await aCutClient(line);
      const { thread_id: threadId } = await client.threads.create();
      const seen: StreamEvent[] = [];
      for await (const event of client.runs.stream(threadId, "sleep", {
        input: { messages: [], milliseconds: 1_500 },
        streamMode: "custom",
        streamResumable,
        onDisconnect: "continue",
      })) {
        seen.push(event);
        if (seen.length === 4) proxy.cut();
      }
      inOrder(seen);
      expect(seen.at(-1)?.data).toEqual({ slept: 1_500 });
      expect(seen).toHaveLength(17);
    });

  for (const bytes of [1_500, 6_000, 12_000])
    test(`continues after a cut in the middle of a frame, after ${bytes} bytes`, async () => {
      const { client, proxy } = await aCutClient(line);
      const { thread_id: threadId } = await (await clientOf(line, server.url)).threads.create();
      proxy.cutNextAfter(bytes);
      const seen: StreamEvent[] = [];
      for await (const event of client.runs.stream(threadId, "custom-events", {
        input: { count: 300 },
        streamMode: "custom",
        streamResumable: true,
      }))
        seen.push(event);
      expect(seen.filter(({ event }) => event === "custom").map(({ data }) => data)).toEqual(
        Array.from({ length: 300 }, (_, index) => ({ index })),
      );
      inOrder(seen);
      expect(proxy.connections).toBeGreaterThan(1);
    });

  test("does not reconnect after the run's end, which is a clean end", async () => {
    const { client, proxy } = await aCutClient(line);
    const events: string[] = [];
    for await (const { event } of client.runs.stream(null, "two-step", {
      input: { messages: [] },
      streamMode: "updates",
    })) {
      events.push(event);
    }
    expect(events).toEqual(["metadata", "updates", "updates"]);
    // From 1.15 on the SDK asks for the run's status to be sure.
    expect(proxy.connections).toBeLessThanOrEqual(line.asksAfterEnd ? 2 : 1);
  });

  test("ignores heartbeats, also after an event with an id", async () => {
    const client = await clientOf(line, server.url);
    const { thread_id: threadId } = await client.threads.create();
    const seen: StreamEvent[] = [];
    for await (const event of client.runs.stream(threadId, "sleep", {
      input: { messages: [], milliseconds: 5_500 },
      streamMode: "values",
    }))
      seen.push(event);
    expect(seen.filter(({ data }) => data === null || data === undefined)).toEqual([]);
    expect(seen.map(({ event }) => event)).toEqual(["metadata", "values", "values"]);
    inOrder(seen);
  });
});
