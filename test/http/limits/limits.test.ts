import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { eventually } from "../../helpers/conditions.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";

/** The whole server's behaviour when callers send too many requests, or keep too much open. */

const KEY = "a-key-of-the-operator";
const OTHER = "another-key-of-the-operator";
const [READS, WRITES, RUNS, STREAMS_AT_ONCE] = [40, 60, 6, 3];

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    apiKeys: [KEY, OTHER, "a", "b", "c", "d", "e", "f"],
    keyFactor: 1,
    readsPerMinute: READS,
    writesPerMinute: WRITES,
    runsPerMinute: RUNS,
    streamsPerCaller: STREAMS_AT_ONCE,
    trustedProxies: ["loopback"],
  });
});
afterAll(async () => {
  await server.close();
});

const ask = async (key: string, method: string, path: string, body?: unknown): Promise<Response> =>
  await fetch(`${server.url}${path}`, {
    method,
    headers: { "x-api-key": key, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
const aThread = async (key = KEY): Promise<string> =>
  ((await (await ask(key, "POST", "/threads", {})).json()) as { thread_id: string }).thread_id;
const run = { assistant_id: "counter", input: {} };

test("a caller with too many requests gets a 429 with Retry-After, and others are served", async () => {
  let refused: Response | undefined;
  for (let count = 0; count <= READS * 10 && refused === undefined; count += 1) {
    const answer = await ask("a", "GET", "/assistants/counter");
    if (answer.status === 429) refused = answer;
    else expect(answer.headers.get("ratelimit-limit")).toBe(String(READS));
  }
  expect(refused?.headers.get("retry-after")).toMatch(/^[12]$/);
  expect(refused?.headers.get("ratelimit-remaining")).toBe("0");
  expect(await refused?.json()).toEqual({
    detail: expect.stringMatching(
      /^At most 40 reading requests of one caller are taken in a minute; try again in (a second|2 seconds)\.$/,
    ),
  });
  expect((await ask("b", "GET", "/assistants/counter")).status).toBe(200);
  const logged = server.lines.filter((line) => line.includes('"limit":"reads"'));
  expect(logged).toHaveLength(1);
  expect(JSON.parse(logged[0] ?? "")).toMatchObject({ caller_kind: "key", caller: expect.any(String) });
});

test("a caller at the limit of reads may create runs, and vice versa", async () => {
  const threadId = await aThread();
  const answers: number[] = [];
  while (answers.at(-1) !== 429 && answers.length < RUNS * 10) {
    const answer = await ask("c", "POST", `/threads/${threadId}/runs/wait`, run);
    // The headers arrive at once: a run that is waited for is an open stream.
    await answer.text();
    answers.push(answer.status);
  }
  expect(answers.slice(0, RUNS)).toEqual(Array.from({ length: RUNS }, () => 200));
  expect(answers.at(-1)).toBe(429);
  expect((await ask("c", "GET", `/threads/${threadId}`)).status).toBe(200);
});

test("each initial state of a new thread counts as a change", async () => {
  const updates = Array.from({ length: WRITES * 4 }, () => ({ values: {}, as_node: "first" }));
  const thread = { metadata: { graph_id: "two-step" }, supersteps: [{ updates }] };
  expect((await ask("f", "POST", "/threads", thread)).status).toBe(200);
  expect((await ask("f", "POST", "/threads", {})).status).toBe(429);
});

test("each run of a batch counts", async () => {
  const batch = Array.from({ length: RUNS * 3 }, () => run);
  expect((await ask("d", "POST", "/runs/batch", batch)).status).toBe(200);
  expect((await ask("d", "POST", "/runs", run)).status).toBe(429);
});

test("the body of a refused request is not read", async () => {
  await ask(
    "e",
    "POST",
    "/runs/batch",
    Array.from({ length: RUNS * 3 }, () => run),
  );
  const answer = await fetch(`${server.url}/runs`, {
    method: "POST",
    headers: { "x-api-key": "e", "content-type": "application/json" },
    body: "this is no JSON",
  });
  expect(answer.status).toBe(429);
});

test("health probes are never refused", async () => {
  for (let count = 0; count < READS * 2; count += 1) {
    expect((await fetch(`${server.url}/ok`, { headers: { "x-forwarded-for": "10.1.1.1" } })).status).toBe(
      200,
    );
  }
});

test("commands over a WebSocket count as requests", async () => {
  const threadId = await aThread(OTHER);
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/threads/${threadId}/stream/events`, {
    headers: { "x-api-key": OTHER },
  });
  const answers: { type: string; message?: string }[] = [];
  socket.on("message", (data) => answers.push(JSON.parse(String(data)) as { type: string }));
  await new Promise((resolve) => socket.once("open", resolve));
  for (let id = 0; id <= READS * 5; id += 1) {
    socket.send(JSON.stringify({ id, method: "agent.getTree", params: {} }));
  }
  await eventually("all are answered", () => answers.length > READS * 5);
  expect(answers.slice(0, READS).map(({ type }) => type)).not.toContain("error");
  expect(answers.find(({ type }) => type === "error")).toMatchObject({
    message: expect.stringContaining("At most 40 reading requests"),
  });
  socket.terminate();
});

test("a caller has a maximum of open streams, and may open another after closing one", async () => {
  const address = `${server.url}/threads/${await aThread()}/stream`;
  const closing: AbortController[] = [];
  const open = async () => {
    const controller = new AbortController();
    const answer = await fetch(address, { headers: { "x-api-key": KEY }, signal: controller.signal });
    if (answer.status === 200) closing.push(controller);
    return answer;
  };
  for (let count = 0; count < STREAMS_AT_ONCE; count += 1) expect((await open()).status).toBe(200);
  const refused = await open();
  expect(refused.status).toBe(429);
  expect(refused.headers.get("retry-after")).toBe("5");
  expect(await refused.json()).toEqual({
    detail:
      "At most 3 streams, WebSockets and waiting requests of one caller are open at once; close one first.",
  });
  // A run that would be waited for is not created either.
  const runs = async () => await (await ask(KEY, "POST", "/runs/search", {})).json();
  const before = await runs();
  expect((await ask(KEY, "POST", "/runs/wait", run)).status).toBe(429);
  expect(await runs()).toEqual(before);
  // Cancelling does not wait unless requested: the SDKs always send 'wait'.
  const cancel = async (wait: string) =>
    (await ask(KEY, "POST", `/threads/${await aThread()}/runs/${randomUUID()}/cancel?wait=${wait}`)).status;
  expect(await cancel("0")).toBe(404);
  expect(await cancel("1")).toBe(429);

  const socket = new WebSocket(address.replace("http", "ws") + "/events", { headers: { "x-api-key": KEY } });
  const [error] = await new Promise<[Error]>((resolve) => socket.once("error", (...args) => resolve(args)));
  expect(error.message).toContain("429");

  closing.pop()?.abort();
  await eventually("there is room again", async () => (await open()).status === 200);
  for (const controller of closing) controller.abort();
});

test("/metrics counts refused requests and open streams", async () => {
  const text = await eventually("all streams are closed", async () => {
    const answer = await (await ask("b", "GET", "/metrics")).text();
    return answer.includes("threadloom_open_streams 0") ? answer : undefined;
  });
  expect(text).toMatch(/threadloom_refused_total\{limit="runs"\} [1-9]/);
  expect(text).toMatch(/threadloom_refused_total\{limit="open_streams"\} [1-9]/);
});

test("without access control callers are distinguished by the address that a trusted proxy names", async () => {
  const open = await startTestServer({
    connectionString: server.connectionString,
    readsPerMinute: 3,
    trustedProxies: ["loopback"],
  });
  try {
    const statuses = async (address: string | undefined, times: number) => {
      const found = [];
      for (let count = 0; count < times; count += 1) {
        const headers: Record<string, string> = address === undefined ? {} : { "x-forwarded-for": address };
        found.push((await fetch(`${open.url}/threads/${randomUUID()}`, { headers })).status);
      }
      return found;
    };
    expect(await statuses("10.0.0.1", 4)).toEqual([404, 404, 404, 429]);
    expect(await statuses("10.0.0.2", 1)).toEqual([404]);
    // An address that the caller adds in front is ignored.
    expect(await statuses("10.0.0.3, 10.0.0.1", 1)).toEqual([429]);
    // Requests from this machine are never refused.
    expect(await statuses(undefined, 10)).not.toContain(429);
  } finally {
    await open.close();
  }
});

test("the header of an untrusted proxy changes nothing", async () => {
  const open = await startTestServer({ connectionString: server.connectionString, readsPerMinute: 1 });
  try {
    const headers = { "x-forwarded-for": "10.0.0.1" };
    for (let count = 0; count < 3; count += 1) {
      expect((await fetch(`${open.url}/info`, { headers })).status).toBe(200);
    }
  } finally {
    await open.close();
  }
});
