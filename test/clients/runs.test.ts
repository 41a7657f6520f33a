import type { Client, StreamMode } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, expect } from "vitest";
import { feature } from "../compatibility/feature.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { collected } from "../helpers/collected.ts";
import { columnOf, LINES, load } from "./lines.ts";
import { aLongRun, aThread, HELLO, LONG, refusalOf, textsOf, TWO_STEP_TEXTS } from "./methods/calls.ts";

/** Behaviour of runs beyond one call of each method (methods.test.ts), with each line of the SDK. */

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ jobsPerWorker: 30 });
});
afterAll(() => server.close());

interface Watched {
  client: Client;
  requests(): number;
}

/** The events of `two-step` in each mode: their names without the first one, `metadata`. */
const EVENTS_OF_MODES: [StreamMode, string[]][] = [
  ["values", ["values"]],
  ["updates", ["updates"]],
  ["messages", ["messages/metadata", "messages/complete"]],
  ["messages-tuple", ["messages"]],
  ["debug", ["debug"]],
  ["tasks", ["tasks"]],
  ["checkpoints", ["checkpoints"]],
  ["events", ["events"]],
];

const SCENARIOS: Record<string, (watched: Watched) => Promise<void>> = {
  "streams in each mode": async ({ client }) => {
    for (const [streamMode, expected] of EVENTS_OF_MODES) {
      const events = await collected(client.runs.stream(null, "two-step", { input: HELLO, streamMode }));
      const names = new Set(events.map(({ event }) => event as string));
      names.delete("metadata");
      expect([streamMode, [...names].sort()]).toEqual([streamMode, [...expected].sort()]);
    }
    const custom = { input: { messages: [], milliseconds: 1 }, streamMode: "custom" as const };
    const events = await collected(client.runs.stream(null, "sleep", custom));
    expect(events.map(({ data }) => data).slice(1)).toEqual([{ sleeping: 1 }, { slept: 1 }]);
  },

  "streams tokens whose texts together are the message": async ({ client }) => {
    const input = { messages: [], tokens: 20 };
    const threadId = await aThread(client);
    let text = "";
    for await (const { event, data } of client.runs.stream(threadId, "tokens", {
      input,
      streamMode: "messages-tuple",
    })) {
      if ((event as string) === "messages") text += (data as unknown as [{ content: string }])[0].content;
    }
    expect(text).not.toBe("");
    expect(textsOf((await client.threads.getState(threadId)).values).at(-1)).toBe(text);
  },

  "streams subgraphs, by name and task": async ({ client }) => {
    const input = { topic: "cats", messages: [] };
    const stream = client.runs.stream(null, "research", {
      input,
      streamMode: "updates",
      streamSubgraphs: true,
    });
    const names = (await collected(stream)).map(({ event }) => event as string);
    expect(names).toContain("updates");
    expect(names.some((name) => /^updates\|investigate:[0-9a-f-]{36}/.test(name))).toBe(true);
  },

  "shows an error as an event": async ({ client }) => {
    const failing = { input: { reason: "out of luck" }, streamMode: "values" as const };
    const events = await collected(client.runs.stream(null, "failing", failing));
    expect(events.at(-1)).toMatchObject({ event: "error", data: { error: "Error", message: "out of luck" } });
  },

  "stops at an interrupt, shows it on the thread, and continues with the answer": async ({ client }) => {
    const threadId = await aThread(client);
    const asked = await collected(
      client.runs.stream(threadId, "approval", { input: HELLO, streamMode: "updates" }),
    );
    const question = { value: { question: "Send this draft?" } };
    expect(asked.at(-1)).toMatchObject({ event: "updates", data: { __interrupt__: [question] } });
    const thread = await client.threads.get(threadId);
    expect(thread.status).toBe("interrupted");
    expect(Object.values(thread.interrupts ?? {}).flat()).toMatchObject([question]);
    const command = { resume: { decision: "approve" } };
    expect(await client.runs.wait(threadId, "approval", { command })).toMatchObject({ status: "sent" });
  },

  "stops before a node, and continues without an input": async ({ client }) => {
    const threadId = await aThread(client);
    await client.runs.wait(threadId, "two-step", { input: HELLO, interruptBefore: ["second"] });
    expect(await client.threads.getState(threadId)).toMatchObject({ next: ["second"] });
    expect(textsOf(await client.runs.wait(threadId, "two-step", {}))).toEqual(TWO_STEP_TEXTS);
  },

  "continues from an earlier checkpoint: a branch": async ({ client }) => {
    const threadId = await aThread(client);
    await client.runs.wait(threadId, "two-step", { input: HELLO });
    const { checkpoint } = await client.threads.getState(threadId);
    await client.runs.wait(threadId, "two-step", { input: HELLO });
    const edited = { messages: [{ role: "user", content: "edited" }] };
    const checkpointId = checkpoint.checkpoint_id as string;
    const branch = await client.runs.wait(threadId, "two-step", { input: edited, checkpointId });
    expect(textsOf(branch)).toEqual([...TWO_STEP_TEXTS, "edited", "first", "second"]);
  },

  "is refused a second run on a busy thread, and does not retry": async ({ client, requests }) => {
    const { threadId, runId } = await aLongRun(client);
    const second = { input: HELLO, multitaskStrategy: "reject" as const };
    const before = requests();
    expect(await refusalOf(client.runs.create(threadId, "two-step", second))).toBe(409);
    expect(await refusalOf(collected(client.runs.stream(threadId, "two-step", second)))).toBe(409);
    expect(requests() - before).toBe(2);
    expect(await client.runs.list(threadId)).toHaveLength(1);
    await client.runs.cancel(threadId, runId, true);
    // A second time, because clients cancel ended runs.
    await client.runs.cancel(threadId, runId);
  },

  "lets a second run wait, interrupt the first or roll it back": async ({ client }) => {
    for (const [multitaskStrategy, becomes] of [
      ["interrupt", "interrupted"],
      ["rollback", undefined],
      ["enqueue", "interrupted"],
    ] as const) {
      const { threadId, runId } = await aLongRun(client);
      const second = await client.runs.create(threadId, "two-step", { input: HELLO, multitaskStrategy });
      if (multitaskStrategy === "enqueue") await client.runs.cancel(threadId, runId);
      expect(textsOf(await client.runs.join(threadId, second.run_id))).toEqual(TWO_STEP_TEXTS);
      const first = client.runs.get(threadId, runId);
      if (becomes === undefined) expect(await refusalOf(first)).toBe(404);
      else expect(await first).toMatchObject({ status: becomes });
    }
  },

  "cancels a joined run when its reader leaves, if requested": async ({ client }) => {
    const threadId = await aThread(client);
    const run = await client.runs.create(threadId, "sleep", { ...LONG, streamMode: "custom" });
    const leave = new AbortController();
    const joined = client.runs.joinStream(threadId, run.run_id, {
      signal: leave.signal,
      cancelOnDisconnect: true,
    });
    expect(await joined.next()).toMatchObject({ done: false, value: { event: "metadata" } });
    expect(await joined.next()).toMatchObject({ done: false, value: { event: "custom" } });
    expect(await client.runs.get(threadId, run.run_id)).toMatchObject({ status: "running" });
    leave.abort();
    await joined.next().catch(() => undefined);
    await expect.poll(async () => (await client.runs.get(threadId, run.run_id)).status).toBe("interrupted");
  },

  "gets an error for a missing run, and does not retry": async ({ client, requests }) => {
    const threadId = await aThread(client);
    const before = requests();
    const missing = crypto.randomUUID();
    expect(await refusalOf(collected(client.runs.joinStream(threadId, missing)))).toBe(404);
    expect(await refusalOf(client.runs.join(threadId, missing))).toBe(404);
    expect(requests() - before).toBe(2);
  },
};

for (const line of LINES) {
  const { Client } = await load(line);
  for (const [row, show] of Object.entries(SCENARIOS)) {
    feature({ table: "Runs by the JavaScript SDK", row, column: columnOf(line) }, async () => {
      let requests = 0;
      const counting: typeof fetch = (...given) => {
        requests += 1;
        return fetch(...given);
      };
      const client = new Client({ apiUrl: server.url, callerOptions: { fetch: counting } });
      await show({ client, requests: () => requests });
    });
  }
}
