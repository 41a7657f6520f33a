import { Client } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { startCuttingProxy, type CuttingProxy } from "../helpers/cutting-proxy.ts";

let server: TestServer;
const proxies: CuttingProxy[] = [];
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => {
  for (const proxy of proxies) await proxy.close();
  await server.close();
});

const direct = (): Client => new Client({ apiUrl: server.url });
const aCutClient = async (): Promise<{ client: Client; proxy: CuttingProxy }> => {
  const proxy = await startCuttingProxy(server);
  proxies.push(proxy);
  return { client: new Client({ apiUrl: proxy.url }), proxy };
};

// At the same time: the SDK lets a second or two pass before it comes back.
describe.concurrent("the SDK, when its connection is cut", { timeout: 20_000 }, () => {
  test.each([[false], [true]])(
    "goes on where it was, misses nothing and sees nothing twice (resumable: %s)",
    async (streamResumable) => {
      const { client, proxy } = await aCutClient();
      const { thread_id: threadId } = await client.threads.create();
      const seen: { id?: string; event: string; data: unknown }[] = [];
      for await (const event of client.runs.stream(threadId, "sleep", {
        input: { messages: [], milliseconds: 1_500 },
        streamMode: "custom",
        streamResumable,
        onDisconnect: "continue",
      })) {
        seen.push(event);
        if (seen.length === 4) proxy.cut();
      }
      expect(seen.map(({ id }) => id)).toEqual(seen.map((_, index) => String(index)));
      expect(seen.at(-1)?.data).toEqual({ slept: 1_500 });
      expect(seen).toHaveLength(17);
    },
  );

  test.each([1_500, 6_000, 12_000])(
    "goes on after a cut in the middle of a frame, after %i bytes",
    async (bytes) => {
      const { client, proxy } = await aCutClient();
      const { thread_id: threadId } = await direct().threads.create();
      proxy.cutNextAfter(bytes);
      const ids: (string | undefined)[] = [];
      const sent: unknown[] = [];
      const events: AsyncIterable<{ id?: string; event: string; data: unknown }> = client.runs.stream(
        threadId,
        "custom-events",
        {
          input: { count: 300 },
          streamMode: "custom",
          streamResumable: true,
        },
      );
      for await (const { id, event, data } of events) {
        ids.push(id);
        if (event === "custom") sent.push(data);
      }
      expect(sent).toEqual(Array.from({ length: 300 }, (_, index) => ({ index })));
      expect(ids).toEqual(ids.map((_, index) => String(index)));
      expect(proxy.connections).toBeGreaterThan(1);
    },
  );

  test("does not come back when the run has ended: that is a clean end", async () => {
    const { client, proxy } = await aCutClient();
    const events: string[] = [];
    for await (const { event } of client.runs.stream(null, "two-step", {
      input: { messages: [] },
      streamMode: "updates",
    })) {
      events.push(event);
    }
    expect(events).toEqual(["metadata", "updates", "updates"]);
    expect(proxy.connections).toBe(1);
  });
});
