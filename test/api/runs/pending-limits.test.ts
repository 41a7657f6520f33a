import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { apiOf } from "../../helpers/api.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";

/** A caller at the limit of waiting runs gets this answer, and nothing is stored. */

const [PER_THREAD, PER_CALLER, KEY_FACTOR] = [2, 4, 2];
const KEYS = ["a", "b", "c", "d", "e", "f", "g", "h", "i"] as const;
type Key = (typeof KEYS)[number];
const OF_A_KEY = { onThread: PER_THREAD * KEY_FACTOR, ofCaller: PER_CALLER * KEY_FACTOR };

let server: TestServer;
/** Another process of the same deployment. */
let replica: TestServer;
beforeAll(async () => {
  const limits = {
    apiKeys: [...KEYS],
    keyFactor: KEY_FACTOR,
    pendingRunsPerThread: PER_THREAD,
    pendingRunsPerCaller: PER_CALLER,
  };
  server = await startTestServer(limits);
  replica = await startTestServer({ ...limits, connectionString: server.connectionString });
});
afterAll(async () => {
  await replica.close();
  await server.close();
});

const LATER = { assistant_id: "counter", input: {}, after_seconds: 3_600 };
const NOW = { assistant_id: "counter", input: {}, multitask_strategy: "enqueue" };

const ask = async (key: Key, path: string, body: unknown, { url }: TestServer = server) =>
  await fetch(`${url}${path}`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
const aThread = async (key: Key): Promise<string> =>
  ((await (await ask(key, "/threads", {})).json()) as { thread_id: string }).thread_id;
const stored = async (): Promise<{ runs: string; threads: string; unfinished: string }> =>
  (
    await query<{ runs: string; threads: string; unfinished: string }>(
      server,
      `select (select count(*) from threadloom.runs) as runs, count(*) as threads, sum(unfinished_runs) as unfinished
       from threadloom.threads`,
    )
  )[0]!;

/** A busy thread with the maximum of waiting runs for a caller with a key. */
const aFullThread = async (key: Key): Promise<string> => {
  const threadId = await aThread(key);
  for (let count = 0; count < OF_A_KEY.onThread; count += 1)
    expect((await ask(key, `/threads/${threadId}/runs`, LATER)).status).toBe(200);
  return threadId;
};
/** Creates the maximum of waiting runs of a caller, on threads of their own. */
const fill = async (key: Key): Promise<void> => {
  const runs = Array.from({ length: OF_A_KEY.ofCaller }, () => LATER);
  expect((await ask(key, "/runs/batch", runs)).status).toBe(200);
};

const THREAD_FULL =
  /^Thread '.*' has 4 runs or more that wait, and no more are taken; try again when some have ended\.$/;
const CALLER_FULL = "At most 8 runs of one caller wait at the same time; try again when some have ended.";
const expectRefused = async (answer: Response, detail: unknown): Promise<void> => {
  expect(answer.status).toBe(429);
  expect(answer.headers.get("retry-after")).toBe("5");
  expect(await answer.json()).toEqual({ detail });
};

describe("a thread with the maximum of waiting runs", () => {
  test("refuses any other run without storing data; other threads accept theirs", async () => {
    const threadId = await aFullThread("a");
    const before = await stored();
    for (const path of ["runs", "runs/wait", "runs/stream"])
      await expectRefused(
        await ask("a", `/threads/${threadId}/${path}`, NOW),
        expect.stringMatching(THREAD_FULL),
      );
    const batch = [LATER, { ...LATER, thread_id: threadId }];
    await expectRefused(await ask("a", "/runs/batch", batch), expect.stringMatching(THREAD_FULL));
    expect(await stored()).toEqual(before);
    expect((await ask("a", `/threads/${await aThread("a")}/runs/wait`, NOW)).status).toBe(200);
  });

  test("accepts a run that ends the waiting ones", async () => {
    const threadId = await aFullThread("b");
    const run = { ...NOW, multitask_strategy: "interrupt" };
    expect((await ask("b", `/threads/${threadId}/runs/wait`, run)).status).toBe(200);
    expect((await ask("b", `/threads/${threadId}/runs`, LATER)).status).toBe(200);
  });

  test("does not count the running run", async () => {
    const threadId = await aThread("c");
    const busy = { assistant_id: "sleep", input: { messages: [], milliseconds: 600_000 } };
    const { run_id: runId } = (await (await ask("c", `/threads/${threadId}/runs`, busy)).json()) as {
      run_id: string;
    };
    for (let count = 0; count < OF_A_KEY.onThread; count += 1)
      expect((await ask("c", `/threads/${threadId}/runs`, NOW)).status).toBe(200);
    expect((await ask("c", `/threads/${threadId}/runs`, NOW)).status).toBe(429);
    expect((await ask("c", `/threads/${threadId}/runs/${runId}/cancel?wait=1`, {})).status).toBeLessThan(300);
    await eventually("a run is taken again", async () => {
      return (await ask("c", `/threads/${threadId}/runs`, NOW)).status === 200;
    });
    // Later tests compare the counts of all threads.
    await eventually("its runs have ended", async () => {
      const [thread] = await query<{ unfinished_runs: number }>(
        server,
        "select unfinished_runs from threadloom.threads where thread_id = $1",
        [threadId],
      );
      return thread?.unfinished_runs === 0;
    });
  });

  test("refuses commands of event streaming, over HTTP and over a WebSocket", async () => {
    const threadId = await aFullThread("d");
    const command = { id: 1, method: "run.start", params: NOW };
    await expectRefused(
      await ask("d", `/threads/${threadId}/commands`, command),
      expect.stringMatching(THREAD_FULL),
    );
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/threads/${threadId}/stream/events`, {
      headers: { "x-api-key": "d" },
    });
    const answers: unknown[] = [];
    socket.on("message", (data) => answers.push(JSON.parse(String(data))));
    await new Promise((resolve) => socket.once("open", resolve));
    socket.send(JSON.stringify(command));
    await eventually("it is answered", () => answers.length > 0);
    expect(answers).toMatchObject([
      { type: "error", id: 1, error: "unknown_error", message: expect.stringMatching(THREAD_FULL) },
    ]);
    socket.terminate();
  });
});

describe("a caller at the limit of waiting runs, over all servers together", () => {
  test("is refused each run that would wait, on any server, and nothing of it is stored", async () => {
    await fill("e");
    const before = await stored();
    for (const one of [server, replica])
      for (const [path, body] of [
        ["/runs", LATER],
        ["/runs/wait", LATER],
        ["/runs/stream", LATER],
        ["/runs/batch", [NOW]],
      ] as const)
        await expectRefused(await ask("e", path, body, one), CALLER_FULL);
    expect(await stored()).toEqual(before);
  });

  test("may create runs that start at once, and other callers are not limited", async () => {
    await fill("f");
    // While runs of earlier tests wait for a slot, a new run would wait, too.
    for (const path of ["/runs/wait", `/threads/${await aThread("f")}/runs/wait`])
      await eventually("a run starts", async () => (await ask("f", path, NOW)).status === 200);
    expect((await ask("g", "/runs", LATER)).status).toBe(200);
  });

  test("has a whole batch refused if one run is too many", async () => {
    const many = (length: number) => Array.from({ length }, () => LATER);
    expect((await ask("h", "/runs/batch", many(OF_A_KEY.ofCaller - 1))).status).toBe(200);
    const before = await stored();
    await expectRefused(await ask("h", "/runs/batch", many(2)), CALLER_FULL);
    expect(await stored()).toEqual(before);
    expect((await ask("h", "/runs/batch", many(1))).status).toBe(200);
  });

  test("can't exceed the limit far with many concurrent requests", async () => {
    const answers = await Promise.all(
      Array.from(
        { length: 60 },
        async (_, count) => await ask("i", "/runs", LATER, count % 2 ? server : replica),
      ),
    );
    const taken = answers.filter(({ status }) => status === 200).length;
    // Runs that are being stored are not counted: one statement of each server may hold many.
    expect(taken).toBeGreaterThanOrEqual(OF_A_KEY.ofCaller);
    expect(taken).toBeLessThanOrEqual(OF_A_KEY.ofCaller + 40);
    await expectRefused(await ask("i", "/runs", LATER), CALLER_FULL);
  });
});

test("callers without a name are not counted, and a thread limits them like a key", async () => {
  const open = await startTestServer({ keyFactor: 2, pendingRunsPerThread: 1, pendingRunsPerCaller: 1 });
  try {
    const api = apiOf(open);
    const threadId = await api.aThread();
    const answers: number[] = [];
    for (let count = 0; count < 3; count += 1)
      answers.push((await api.post(`/threads/${threadId}/runs`, LATER)).status);
    expect(answers).toEqual([200, 200, 429]);
    for (let count = 0; count < 3; count += 1) expect((await api.post("/runs", LATER)).status).toBe(200);
  } finally {
    await open.close();
  }
});

test("0 means no limit", async () => {
  const open = await startTestServer({
    apiKeys: ["a"],
    keyFactor: 1,
    pendingRunsPerThread: 0,
    pendingRunsPerCaller: 0,
  });
  try {
    const threadId = ((await (await ask("a", "/threads", {}, open)).json()) as { thread_id: string })
      .thread_id;
    for (let count = 0; count < 3; count += 1)
      expect((await ask("a", `/threads/${threadId}/runs`, LATER, open)).status).toBe(200);
  } finally {
    await open.close();
  }
});
