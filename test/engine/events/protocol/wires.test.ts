import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { ThreadReader } from "../../../../src/engine/events/readers/thread-reader.ts";
import { isProtocolEvent, type Wire } from "../../../../src/engine/events/wires.ts";
import { apiOf, saying, type Api } from "../../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../../helpers/app.ts";
import { eventually } from "../../../helpers/conditions.ts";
import { query } from "../../../helpers/query.ts";
import { openStream } from "../../../helpers/server-sent-events.ts";
import { openFrames, started } from "../../../protocols/streaming/frames.ts";
import { openHub, readUntil, type ReadEvent } from "../open-hub.ts";

/** Runs that are sent over both wires, and what each reader receives. */

let server: TestServer;
let replica: TestServer;
let api: Api;
let opened: Awaited<ReturnType<typeof openHub>>;
const readers: ThreadReader[] = [];
beforeAll(async () => {
  server = await startTestServer();
  replica = await startTestServer({ connectionString: server.connectionString, role: "api" });
  api = apiOf(server);
  opened = await openHub(server.connectionString);
});
afterEach(() => {
  for (const reader of readers.splice(0)) reader.close();
});
afterAll(async () => {
  await opened.close();
  await replica.close();
  await server.close();
});

const read = (threadId: string, wire: Wire): ThreadReader => {
  const reader = opened.hub.readThread(threadId, 0, wire);
  readers.push(reader);
  return reader;
};
/** The events that a reader receives of a run, until it is over. */
const readRun = async (reader: ThreadReader, runId: string): Promise<ReadEvent[]> => {
  const published: ReadEvent[] = [];
  for (;;) {
    const news = await reader.next();
    if (typeof news === "string") throw new Error(`The reader is ${news}.`);
    if (news.runId !== runId) continue;
    published.push(...news.events.map((event) => ({ ...event, runId })));
    if (news.isOver) return published;
  }
};
const namesOf = (events: readonly { event: string }[]): string[] => events.map(({ event }) => event);

const RUN = { assistant_id: "two-step", input: saying("hello"), stream_mode: ["values", "updates"] };
const OF_THE_FIRST_WIRE = ["metadata", "values", "updates", "values", "updates", "values"];
const logged = async (runId: string): Promise<string[]> =>
  namesOf(
    await query<{ event: string }>(
      server,
      "select event from threadloom.run_events where run_id = $1 order by seq",
      [runId],
    ),
  );

test("a run started with run.start is sent over both wires, and each reader receives only its own wire", async () => {
  const threadId = await api.aThread();
  const { runId } = await started(server.url, threadId, {
    assistant_id: "two-step",
    input: saying("hello"),
  });
  const over = await readRun(read(threadId, "protocol"), runId);
  expect(new Set(namesOf(over).map((event) => event.replace("protocol:", "")))).toEqual(
    new Set(["metadata", "values", "updates", "tasks", "checkpoints"]),
  );
  const first = await readRun(read(threadId, "first"), runId);
  expect(namesOf(first).filter(isProtocolEvent)).toEqual([]);
  for (const { url } of [server, replica]) {
    const stream = await openStream(`${url}/threads/${threadId}/runs/${runId}/stream`, {
      headers: { "last-event-id": "-1" },
    });
    expect(namesOf(await stream.rest())).toEqual(namesOf(first));
  }
  const { kwargs } = await api.run(threadId, runId);
  expect(kwargs).not.toHaveProperty("event_streaming");
});

test("a run without a follower on the protocol wire creates none of its events", async () => {
  const threadId = await api.aThread();
  const reader = read(threadId, "first");
  const run = await api.aRun(threadId, { ...RUN, stream_resumable: true });
  expect(namesOf(await readRun(reader, run.run_id))).toEqual(OF_THE_FIRST_WIRE);
  expect(await logged(run.run_id)).toEqual(OF_THE_FIRST_WIRE);
});

test("a follower of the thread on the same server receives a run of the first wire, whose own stream stays unchanged", async () => {
  const threadId = await api.aThread();
  const frames = await openFrames(server.url, threadId);
  const stream = await openStream(`${server.url}/threads/${threadId}/runs/stream`, { body: RUN });
  expect(namesOf(await stream.rest())).toEqual(OF_THE_FIRST_WIRE);
  await frames.until(({ method, params }) => method === "updates" && params.node === "second");
  frames.close();
});

// Signals announce that another process follows a thread.
test("a follower on another process receives it, too", async () => {
  const threadId = await api.aThread();
  const reader = read(threadId, "protocol");
  let isTold = false;
  const reading = readUntil(reader, ({ event }) => isProtocolEvent(event)).then(() => (isTold = true));
  await eventually("a run that began after the signal was received", async () => {
    const stream = await openStream(`${server.url}/threads/${threadId}/runs/stream`, { body: RUN });
    expect(namesOf(await stream.rest())).toEqual(OF_THE_FIRST_WIRE);
    return isTold;
  });
  await reading;
});

test("a reader that reconnects to a run of both wires after any event gets the rest of its own wire", async () => {
  const threadId = await api.aThread();
  const { runId } = await started(server.url, threadId, {
    assistant_id: "two-step",
    input: saying("hello"),
  });
  await api.untilRunIs(threadId, runId, "success");
  const address = `/threads/${threadId}/runs/${runId}/stream`;
  const all = await (await openStream(server.url + address, { headers: { "last-event-id": "-1" } })).rest();
  for (const { url } of [server, replica]) {
    for (const [index, { id }] of all.entries()) {
      const stream = await openStream(url + address, { headers: { "last-event-id": String(id) } });
      expect((await stream.rest()).map((event) => event.id)).toEqual(
        all.slice(index + 1).map((event) => event.id),
      );
    }
  }
});
