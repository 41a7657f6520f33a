import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { ThreadReader } from "../../../src/engine/events/readers/thread-reader.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { apiOf, saying, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { idsOf, openHub, readUntil, type ReadEvent } from "./open-hub.ts";

/** Reads a thread over several runs, from a process that executes none of them. */

let server: TestServer;
let replica: TestServer;
let apis: Api[];
let opened: Awaited<ReturnType<typeof openHub>>;
const readers: ThreadReader[] = [];
beforeAll(async () => {
  server = await startTestServer();
  replica = await startTestServer({ connectionString: server.connectionString });
  apis = [server, replica].map(apiOf);
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

const read = (threadId: string, after = 0): ThreadReader => {
  const reader = opened.hub.readThread(threadId, after, "first");
  readers.push(reader);
  return reader;
};
const expectRising = (ids: readonly number[]): void => {
  expect(ids.filter((id, index) => id <= (ids[index - 1] ?? 0))).toEqual([]);
};

const aResumableRun = async (api: Api, threadId: string): Promise<string> => {
  const run = await api.aRun(threadId, {
    assistant_id: "two-step",
    input: saying("hello"),
    stream_resumable: true,
    stream_mode: "values",
  });
  await api.untilRunIs(threadId, run.run_id, "success");
  return run.run_id;
};

describe("the events of a thread", () => {
  test("arrive run by run, in the order in which the runs began, on whichever server", async () => {
    const threadId = await apis[0]!.aThread();
    const runIds: string[] = [];
    for (const api of [...apis, ...apis]) runIds.push(await aResumableRun(api, threadId));
    const last = runIds.at(-1) ?? "";
    const published = await readUntil(read(threadId), ({ runId, seq }) => runId === last && seq === 3);
    expectRising(idsOf(published));
    expect(published.map(({ runId, seq }) => [runId, seq])).toEqual(
      runIds.flatMap((runId) => [0, 1, 2, 3].map((seq) => [runId, seq])),
    );
  });

  test("continue after any of them", async () => {
    const threadId = await apis[0]!.aThread();
    for (const api of apis) await aResumableRun(api, threadId);
    const reader = read(threadId);
    const all: ReadEvent[] = [];
    while (all.length < 8) all.push(...(await readUntil(reader, () => true)));
    for (const [index, { threadSeq }] of all.slice(0, -1).entries()) {
      const rest = await readUntil(
        read(threadId, threadSeq),
        (event) => event.threadSeq === all.at(-1)?.threadSeq,
      );
      expect(rest).toEqual(all.slice(index + 1));
    }
  });

  // Only signals announce a follower. Without them, a run that is not resumable is not logged for readers on other servers.
  test("reach a reader that waits for a thread that does not exist yet, and none of a later run is missed", async () => {
    const threadId = newId();
    const reader = read(threadId);
    const first = reader.next();
    await apis[0]!.aThread({ thread_id: threadId });
    const long = await apis[0]!.aRun(threadId, { assistant_id: "sleep", input: { milliseconds: 600_000 } });
    const began = await first;
    expect(began).toMatchObject({ runId: long.run_id });
    expect(typeof began === "string" ? began : began.events[0]).toMatchObject({
      seq: 0,
      event: "metadata",
    });
    await apis[0]!.cancel(threadId, long.run_id);
    // The run has no reader on its own server, and is not resumable.
    const next = await apis[1]!.aRun(threadId, {
      assistant_id: "two-step",
      input: saying("again"),
      stream_mode: "values",
    });
    const published = await readUntil(reader, ({ runId, seq }) => runId === next.run_id && seq === 3);
    expectRising(idsOf(published));
    expect(published.filter((event) => event.runId === next.run_id).map(({ seq }) => seq)).toEqual([
      0, 1, 2, 3,
    ]);
  });

  test("end when the reader is closed, also while it waits", async () => {
    const reader = read(newId());
    const next = reader.next();
    reader.close();
    expect([await next, await reader.next()]).toEqual(["ended", "ended"]);
  });
});
