import { Client } from "@langchain/langgraph-sdk";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { ENGINE_GRAPHS } from "../../engine/graphs/config-file.ts";
import { workerProcesses } from "../../engine/worker-process.ts";
import { apiOf } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { startCuttingProxy } from "../../helpers/cutting-proxy.ts";
import { endLeases, PATIENT_LEASES } from "../../helpers/leases.ts";
import { EVERYTHING, isRoot, openFrames, started, type Frame, type FrameStream } from "./frames.ts";

/** Connections that are cut, servers that execute elsewhere or die: no event is missed, and none comes twice. */

let server: TestServer;
let replica: TestServer;
const streams: FrameStream[] = [];
const workers = workerProcesses();
beforeAll(async () => {
  server = await startTestServer();
  replica = await startTestServer({ connectionString: server.connectionString });
});
afterEach(() => {
  for (const stream of streams.splice(0)) stream.close();
});
afterAll(async () => {
  await workers.end();
  await replica.close();
  await server.close();
});

const open = async (url: string, threadId: string, body?: object): Promise<FrameStream> => {
  const stream = await openFrames(url, threadId, body);
  streams.push(stream);
  return stream;
};
const placed = (frames: readonly Frame[]): unknown[] => frames.map(({ seq, event_id: id }) => [seq, id]);
const TOKENS = { assistant_id: "tokens", input: { messages: [], tokens: 300 } };

describe("a client whose connection is cut", () => {
  test("reconnects with the last number repeatedly, and has each event once", async () => {
    const threadId = newId();
    const { runId } = await started(server.url, threadId, TOKENS);
    const whole = await open(server.url, threadId);
    await whole.until(isRoot("completed"));
    const seen: Frame[] = [];
    while (seen.at(-1)?.event_id !== `synth:${runId}:completed`) {
      const part = await open(server.url, threadId, { channels: EVERYTHING, since: seen.at(-1)?.seq ?? 0 });
      const wanted = seen.length + 20;
      await part.until((frame) => seen.length + part.seen.length >= wanted || isRoot("completed")(frame));
      part.close();
      seen.push(...part.seen);
    }
    expect(placed(seen)).toEqual(placed(whole.seen));
  });

  test("reconnects like the SDK, without a number, and has all messages and the end", async () => {
    const proxy = await startCuttingProxy(server);
    try {
      const client = new Client({ apiUrl: proxy.url, apiKey: null });
      const thread = client.threads.stream(newId(), { assistantId: "tokens" });
      const ids: (string | undefined)[] = [];
      thread.onEvent(({ event_id: id }) => {
        ids.push(id);
        if (ids.length % 120 === 0) proxy.cut();
      });
      const messages = (async () => {
        const texts: string[] = [];
        for await (const message of thread.messages) texts.push(await message.text);
        return texts;
      })();
      await thread.run.start({ input: TOKENS.input });
      const tokens = Array.from({ length: TOKENS.input.tokens }, (_, index) => `t${index} `).join("");
      expect(await messages).toEqual([tokens]);
      expect([new Set(ids).size, ids.length > 300]).toEqual([ids.length, true]);
      expect(proxy.connections).toBeGreaterThan(1);
      await thread.close();
    } finally {
      await proxy.close();
    }
  });
});

describe("a thread that another server executes", () => {
  test("has the same events on both servers, number by number from the first one on", async () => {
    const threadId = newId();
    const here = await open(server.url, threadId);
    const there = await open(replica.url, threadId);
    for (const { url } of [server, replica]) {
      const { runId } = await started(url, threadId, TOKENS);
      for (const stream of [here, there])
        await stream.until(({ event_id: id }) => id === `synth:${runId}:completed`);
    }
    expect(placed(there.seen)).toEqual(placed(here.seen));
    expect(here.seen.filter(({ method }) => method === "messages").length).toBeGreaterThan(600);
  });

  test("sends runs of the other wire there, too, as long as it has a follower", async () => {
    const threadId = await apiOf(server).aThread();
    const there = await open(replica.url, threadId);
    there.until(() => false).catch(() => undefined);
    // The server creates events of this wire only after it has received the follower's signal.
    await eventually("values of a run of the other wire", async () => {
      await apiOf(server).aFinishedRun(threadId, { assistant_id: "two-step", input: { messages: [] } });
      return there.seen.some(({ method }) => method === "values");
    });
  });
});

test("a run continues with its next attempt when its server is killed, and its readers miss nothing of either", async () => {
  const answering = await startTestServer({
    graphConfigFile: ENGINE_GRAPHS,
    role: "api",
    ...PATIENT_LEASES,
  });
  try {
    const first = await workers.start(answering);
    const threadId = newId();
    const stream = await open(answering.url, threadId);
    const { runId } = await started(answering.url, threadId, { assistant_id: "hesitant", input: {} });
    await stream.until(({ method }) => method === "custom");
    await first.kill();
    await endLeases(answering);
    await workers.start(answering);
    await stream.until(({ event_id: id }) => id === `synth:${runId}:completed`);
    const again = await open(answering.url, threadId);
    await again.until(isRoot("completed"));
    expect(placed(again.seen.filter(({ method }) => method !== "lifecycle"))).toEqual(
      placed(stream.seen.filter(({ method }) => method !== "lifecycle")),
    );
    const seqs = stream.seen.map(({ seq }) => seq);
    expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
    const ids = stream.seen.map(({ event_id: id }) => id);
    expect(ids).toHaveLength(new Set(ids).size);
    // Each attempt begins once.
    const beginnings = stream.seen.filter(isRoot("running"));
    expect(beginnings.map(({ event_id: id }) => id)).toEqual([
      `synth:${runId}:running`,
      `synth:${runId}:running:2`,
    ]);
  } finally {
    for (const stream of streams.splice(0)) stream.close();
    await workers.end();
    await answering.close();
  }
});
