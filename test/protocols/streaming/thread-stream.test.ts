import { Client } from "@langchain/langgraph-sdk";
import { Client as Client115 } from "sdk-1.15";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { apiOf, saying, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { openStream, type EventStream, type SentEvent } from "../../helpers/server-sent-events.ts";

/** The stream of a thread over its runs, as `client.threads.joinStream` reads it. */

let server: TestServer;
let replica: TestServer;
let api: Api;
const streams: EventStream[] = [];
beforeAll(async () => {
  server = await startTestServer();
  replica = await startTestServer({ connectionString: server.connectionString, role: "api" });
  api = apiOf(server);
});
afterEach(() => {
  for (const stream of streams.splice(0)) stream.close();
});
afterAll(async () => {
  await replica.close();
  await server.close();
});

const open = async (
  threadId: string,
  { query = "", after, url = server.url }: { query?: string; after?: number | string; url?: string } = {},
): Promise<EventStream> => {
  const stream = await openStream(`${url}/threads/${threadId}/stream${query}`, {
    headers: after === undefined ? {} : { "last-event-id": String(after) },
  });
  streams.push(stream);
  return stream;
};
const aRun = async (threadId: string, fields: object = {}): Promise<string> => {
  const run = await api.aRun(threadId, {
    assistant_id: "two-step",
    input: saying("hello"),
    stream_mode: "values",
    stream_resumable: true,
    ...fields,
  });
  return run.run_id;
};
const isDone =
  (runId: string) =>
  ({ data }: Pick<SentEvent, "data">): boolean => {
    const { status, run_id } = data as { status?: string; run_id?: string };
    return status === "run_done" && run_id === runId;
  };
const OF_A_RUN = ["metadata", "values", "values", "values", "metadata"];
const namesOf = (events: readonly SentEvent[]): string[] => events.map(({ event }) => event);
const expectRising = (events: readonly SentEvent[]): void => {
  const ids = events.map(({ id = -1 }) => id);
  expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
};

describe("a stream that is opened before any run", () => {
  test.each(["server", "replica"])("sends each run from its first event on: %s", async (which) => {
    const threadId = await api.aThread();
    const stream = await open(threadId, { url: which === "server" ? server.url : replica.url });
    for (let turn = 0; turn < 2; turn += 1) await stream.until(isDone(await aRun(threadId)));
    expect(namesOf(stream.seen)).toEqual([...OF_A_RUN, ...OF_A_RUN]);
    expectRising(stream.seen);
  });

  test("names an address for reconnecting that misses nothing", async () => {
    const threadId = await api.aThread();
    const location = (await open(threadId)).headers.get("location") ?? "";
    expect(location).toMatch(new RegExp(`^/threads/${threadId}/stream\\?`));
    const runId = await aRun(threadId);
    await api.untilRunIs(threadId, runId, "success");
    const again = await openStream(server.url + location);
    streams.push(again);
    await again.until(isDone(runId));
    expect(namesOf(again.seen)).toEqual(OF_A_RUN);
  });
});

test("a later reader receives new events, and one that names an event receives those after it", async () => {
  const threadId = await api.aThread();
  const runs: string[] = [];
  for (let turn = 0; turn < 2; turn += 1) {
    runs.push(await aRun(threadId));
    await api.untilRunIs(threadId, runs.at(-1) ?? "", "success");
  }
  const [first = "", second = ""] = runs;
  const late = await open(threadId);
  const third = await aRun(threadId);
  await late.until(isDone(third));
  expect(namesOf(late.seen)).toEqual(OF_A_RUN);

  for (const after of ["-", "-1", 0]) {
    const all = await open(threadId, { after });
    await all.until(isDone(third));
    expect(all.seen.filter(({ data }) => isDone(first)({ data }) || isDone(second)({ data }))).toHaveLength(
      2,
    );
    expect(namesOf(all.seen)).toEqual([...OF_A_RUN, ...OF_A_RUN, ...OF_A_RUN]);
    expectRising(all.seen);
  }
  const all = await open(threadId, { after: "-" });
  await all.until(isDone(third));
  for (const url of [server.url, replica.url]) {
    for (const [index, { id = 0 }] of all.seen.slice(0, -1).entries()) {
      const rest = await open(threadId, { after: id, url });
      await rest.until(isDone(third));
      expect(rest.seen).toEqual(all.seen.slice(index + 1));
      rest.close();
    }
  }
});

test("a running run is joined at the present, after the event that names it", async () => {
  const threadId = await api.aThread();
  const runId = await aRun(threadId, {
    assistant_id: "sleep",
    input: { milliseconds: 600_000 },
  });
  await api.untilRunIs(threadId, runId, "running");
  const stream = await open(threadId);
  expect(await stream.next()).toMatchObject({ event: "metadata", data: { run_id: runId, attempt: 1 } });
  await api.cancel(threadId, runId);
  await stream.until(isDone(runId));
});

test("lifecycle sends only the beginnings and ends of runs", async () => {
  const threadId = await api.aThread();
  for (const parameter of ["stream_modes", "stream_mode"]) {
    const stream = await open(threadId, { query: `?${parameter}=lifecycle` });
    const runId = await aRun(threadId);
    await stream.until(isDone(runId));
    expect(stream.seen.map(({ event, data }) => [event, data])).toEqual([
      ["metadata", { run_id: runId, attempt: 1 }],
      ["metadata", { status: "run_done", run_id: runId }],
    ]);
  }
});

test("a thread that was deleted and created again is sent from its first run on", async () => {
  const threadId = await api.aThread();
  const stream = await open(threadId);
  for (let count = 0; count < 2; count += 1) await stream.until(isDone(await aRun(threadId)));
  await api.untilQuiet(threadId);
  await api.remove(`/threads/${threadId}`);
  const before = stream.seen.length;
  await stream.until(isDone(await aRun(threadId, { if_not_exists: "create" })));
  expect(namesOf(stream.seen.slice(before))).toEqual(OF_A_RUN);
});

test("state_update sends states that were written by hand", async () => {
  const threadId = await api.aThread();
  const stream = await open(threadId, { query: "?stream_modes=state_update" });
  const runId = await aRun(threadId);
  await api.untilRunIs(threadId, runId, "success");
  await api.untilQuiet(threadId);
  await api.post(`/threads/${threadId}/state`, { values: saying("by hand"), as_node: "first" });
  const { data } = await stream.until(() => true);
  expect(data).toMatchObject({ thread_id: threadId, state: { metadata: { source: "update" } } });
  expect(namesOf(stream.seen)).toEqual(["state_update"]);
});

test("state_update sends of a large state only that it changed", async () => {
  const threadId = await api.aThread();
  const stream = await open(threadId, { query: "?stream_modes=state_update" });
  await api.untilRunIs(threadId, await aRun(threadId), "success");
  await api.untilQuiet(threadId);
  await api.post(`/threads/${threadId}/state`, { values: saying("x".repeat(2_000_000)), as_node: "first" });
  expect((await stream.until(() => true)).data).toEqual({ state: null, thread_id: threadId });
});

test("unknown modes send nothing beside known ones, and are refused alone", async () => {
  const threadId = await api.aThread();
  const stream = await open(threadId, { query: "?stream_modes=weather,lifecycle" });
  await api.untilRunIs(threadId, await aRun(threadId), "success");
  expect(stream.status).toBe(200);
  expect((await api.get(`/threads/${threadId}/stream?stream_modes=weather`)).status).toBe(422);
});

test("a missing thread causes a 404, an invalid id a 422", async () => {
  expect((await api.get(`/threads/${newId()}/stream`)).status).toBe(404);
  expect((await api.get("/threads/first/stream")).status).toBe(422);
  const threadId = await api.aThread();
  await expect(open(threadId, { after: "last" })).rejects.toThrow("answered 422");
});

test.each([
  ["1.12.4", Client],
  ["1.15", Client115],
] as const)("the SDK %s joins a thread, and leaves it", async (_, Sdk) => {
  const client = new Sdk({ apiUrl: server.url });
  const threadId = await api.aThread();
  const leaving = new AbortController();
  const sent: string[] = [];
  let last = "none yet";
  const opened = client.threads.joinStream(threadId, { signal: leaving.signal, streamMode: ["run_modes"] });
  const reading = (async () => {
    for await (const { event, data } of opened) {
      sent.push(event);
      if (isDone(last)({ data })) return;
    }
  })();
  // The SDK connects at the first read; earlier events are not sent.
  while (sent.length === 0) await api.untilRunIs(threadId, await aRun(threadId), "success");
  last = await aRun(threadId);
  await reading;
  leaving.abort();
  expect(sent.slice(-OF_A_RUN.length)).toEqual(OF_A_RUN);
});
