import { Client } from "@langchain/langgraph-sdk";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { startCuttingProxy, type CuttingProxy } from "../helpers/cutting-proxy.ts";

let server: TestServer;
let proxy: CuttingProxy;
beforeAll(async () => {
  server = await startTestServer();
});
afterEach(() => proxy.close());
afterAll(() => server.close());

const direct = (): Client => new Client({ apiUrl: server.url });
const aCutClient = async (): Promise<Client> => {
  proxy = await startCuttingProxy(server);
  return new Client({ apiUrl: proxy.url });
};

describe("the SDK, when its connection is cut", { timeout: 20_000 }, () => {
  test.each([[false], [true]])(
    "goes on where it was, misses nothing and sees nothing twice (resumable: %s)",
    async (streamResumable) => {
      const client = await aCutClient();
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

  test("goes on wherever in the stream the cut was", async () => {
    for (const bytes of [1_200, 2_000]) {
      const client = await aCutClient();
      proxy.cutAfter(bytes);
      const { thread_id: threadId } = await direct().threads.create();
      const ids: (string | undefined)[] = [];
      const updates: string[] = [];
      for await (const { id, event, data } of client.runs.stream(threadId, "ten-steps", {
        input: {},
        streamMode: "updates",
        streamResumable: true,
      })) {
        proxy.cutAfter(undefined);
        ids.push(id);
        if (event === "updates") updates.push(Object.keys(data)[0] ?? "");
      }
      expect(updates).toEqual(Array.from({ length: 10 }, (_, index) => `step_${index + 1}`));
      expect(ids).toEqual(ids.map((_, index) => String(index)));
      expect(proxy.connections).toBeGreaterThan(1);
      await proxy.close();
    }
    proxy = await startCuttingProxy(server);
  });

  test("does not come back when the run has ended: that is a clean end", async () => {
    const client = await aCutClient();
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

  test("makes no second run of a wait that was cut off", async () => {
    const client = await aCutClient();
    const { thread_id: threadId } = await direct().threads.create();
    const waiting = client.runs.wait(threadId, "sleep", {
      input: { messages: [], milliseconds: 400 },
      onDisconnect: "continue",
    });
    waiting.catch(() => undefined);
    await expect.poll(async () => (await direct().runs.list(threadId)).length).toBe(1);
    const [run] = await direct().runs.list(threadId);
    expect(await direct().runs.join(threadId, run?.run_id ?? "")).toMatchObject({
      messages: [{ content: "Slept for 400 ms." }],
    });
    await waiting;
    expect(await direct().runs.list(threadId)).toHaveLength(1);
  });
});
