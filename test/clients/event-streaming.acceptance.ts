import type { Event } from "@langchain/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiOf } from "../helpers/api.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { startCuttingProxy } from "../helpers/cutting-proxy.ts";
import { startServerProcess, type AcceptanceServer } from "./acceptance-server.ts";
import { CLIENT_GRAPHS } from "./graphs/graphs.ts";
import { columnOf, LINES } from "./lines.ts";
import { clientOf, deltaOf, eventsUntilPause, sessionOf, tokensOf } from "./sessions.ts";
import { firstTokenLags, tokensPerSecond, type Wire } from "./rates.ts";

/** Load tests of event streaming; prints figures. `npm run test:clients` runs it, `npm test` does not. */

const print = (line: string): void => void process.stdout.write(`event streaming: ${line}\n`);

const NEWEST = LINES.filter(({ version }) => version === "1.12.4" || version === "1.15.0");

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ graphConfigFile: CLIENT_GRAPHS });
});
afterAll(() => server.close());

describe.each(NEWEST)("SDK $version", (line) => {
  test("100 turns with a question and its answer, one after the other on one thread", async () => {
    const client = await clientOf(line, server.url);
    const threadId = crypto.randomUUID();
    const wrong: string[] = [];
    for (let turn = 0; turn < 100; turn += 1) {
      const thread = sessionOf(client, "SSE", "dialogue", threadId);
      const events = await thread.subscribe({ channels: ["messages", "values", "lifecycle", "input"] });
      const tokens = 10 + (turn % 7);
      // Data of earlier turns are sent again, so only those of this run count.
      const started = await thread.run.start({ input: { tokens } });
      const before = ofRun(await eventsUntilPause(events), started.run_id ?? "");
      const asked = thread.interrupts.at(-1);
      await thread.input.respond({
        interrupt_id: asked?.interruptId ?? "",
        namespace: [...(asked?.namespace ?? [])],
        response: turn,
      });
      const after = (await eventsUntilPause(events)).map(deltaOf).join("");
      const { values } = await apiOf(server).state(threadId);
      if (before !== tokensOf(tokens) || after !== tokensOf(tokens) || values["decision"] !== turn)
        wrong.push(`turn ${turn}: '${before}', '${after}', ${String(values["decision"])}`);
      await thread.close();
    }
    print(`${columnOf(line)}: ${100 - wrong.length} of 100 turns with a question right`);
    expect(wrong).toEqual([]);
  });

  test("50 threads at once with 200 tokens each: none lost, none twice, in order", async () => {
    const client = await clientOf(line, server.url);
    const texts = await Promise.all(
      Array.from({ length: 50 }, async () => {
        const thread = sessionOf(client, "SSE", "tokens");
        const events = await thread.subscribe({ channels: ["messages", "lifecycle"] });
        await thread.run.start({ input: { messages: [], tokens: 200 } });
        const sent = (await eventsUntilPause(events)).map(deltaOf).join("");
        await thread.close();
        return sent;
      }),
    );
    const right = texts.filter((text) => text === tokensOf(200)).length;
    print(`${columnOf(line)}: ${right} of 50 threads at once right, 200 tokens each`);
    expect(right).toBe(50);
  });

  test("1,000 events once each for a client that is cut 100 times", async () => {
    const proxy = await startCuttingProxy(server);
    try {
      const client = await clientOf(line, proxy.url);
      const thread = client.threads.stream(crypto.randomUUID(), {
        assistantId: "paced",
        maxReconnectAttempts: 1_000,
        reconnectDelayMs: () => 0,
      });
      const events = await thread.subscribe({ channels: ["custom", "lifecycle"] });
      await thread.run.start({ input: { messages: [], count: 1_000, pauseMs: 10 } });
      const seen: number[] = [];
      let cuts = 0;
      for await (const event of events) {
        if (event.method !== "custom") continue;
        seen.push((event.params.data.payload as { index: number }).index);
        if (cuts < 100 && seen.length >= 9 * (cuts + 1)) {
          cuts += 1;
          proxy.cut();
        }
      }
      print(
        `${columnOf(line)}: cut ${cuts} times, ${new Set(seen).size} of 1,000 events, ${seen.length} told`,
      );
      await thread.close();
      expect(cuts).toBe(100);
      expect(seen).toEqual(Array.from({ length: 1_000 }, (_, index) => index));
    } finally {
      await proxy.close();
    }
  });
});

/** The model's text in the events since a run's beginning. */
const ofRun = (events: readonly Event[], runId: string): string => {
  const begin = events.findIndex(({ event_id: id }) => id === `synth:${runId}:running`);
  return events.slice(Math.max(0, begin)).map(deltaOf).join("");
};

describe("on a server of its own", () => {
  let alone: AcceptanceServer;
  beforeAll(async () => {
    alone = await startServerProcess();
  });
  afterAll(() => alone?.close());

  const wires: Wire[] = ["run streams", "event streaming"];

  test("50 threads at once have their 200 tokens each in order, over either wire", async () => {
    // `npm run bench -- --only event-streaming` measures how many tokens a second.
    for (const wire of wires) await tokensPerSecond(alone.url, wire, 50, 200);
  });

  for (const wire of wires)
    test(`the first token of 30 runs, over ${wire}`, async () => {
      const lags = await firstTokenLags(alone.url, wire, 30);
      const median = lags.sort((a, b) => a - b)[lags.length / 2] ?? NaN;
      print(`first token over ${wire}: median ${median} ms, most ${lags.at(-1)} ms after the model's`);
      expect(lags).toHaveLength(30);
    });
});
