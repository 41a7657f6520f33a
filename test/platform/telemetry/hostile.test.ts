import { once } from "node:events";
import { createServer } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { Client } from "@langchain/langgraph-sdk";
import { Client as PgClient } from "pg";
import { expect, onTestFinished, test } from "vitest";
import WebSocket from "ws";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase } from "../../helpers/database.ts";
import { logOf } from "../../helpers/project.ts";
import { spawnServer } from "../../helpers/server-process.ts";
import { aReceiver } from "./receiver.ts";

const GRAPHS = fileURLToPath(new URL("./langgraph.json", import.meta.url));
const traceOf = (digit: string): string => digit.repeat(32);
const traceparentOf = (digit: string): string => `00-${traceOf(digit)}-b7ad6b7169203331-01`;

const startWith = async (endpoint: string, environment: Record<string, string> = {}) => {
  const database = await freshDatabase();
  onTestFinished(() => database.drop());
  const server = spawnServer(["--config", GRAPHS, "--port", "0"], {
    DATABASE_URL: database.connectionString,
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_BSP_SCHEDULE_DELAY: "50",
    ...environment,
  });
  onTestFinished(() => server.kill());
  const url = await server.address();
  const client = (headers: Record<string, string> = {}) =>
    new Client({ apiUrl: url, apiKey: null, defaultHeaders: headers });
  const query = async (sql: string): Promise<Record<string, unknown>[]> => {
    const connection = new PgClient({ connectionString: database.connectionString });
    await connection.connect();
    try {
      return (await connection.query(sql)).rows as Record<string, unknown>[];
    } finally {
      await connection.end();
    }
  };
  return { server, url, client, query };
};

const HELLO = { input: { messages: [{ role: "user", content: "hello" }] } };

test("a run is in its request's trace however long the baggage is, and long baggage is not stored", async () => {
  const receiver = await aReceiver();
  const { client, query } = await startWith(receiver.url);
  const short = { traceparent: traceparentOf("a"), baggage: "tenant=blue" };
  const items = Array.from({ length: 100 }, (_, item) => `item${item}=${"%2F".repeat(25)}`);
  const long = { traceparent: traceparentOf("b"), baggage: items.join(",") };
  await client(short).runs.wait((await client().threads.create()).thread_id, "agent", HELLO);
  await client(long).runs.wait((await client().threads.create()).thread_id, "agent", HELLO);
  for (const odd of [
    { traceparent: "00-zz", tracestate: "=".repeat(600), baggage: "%E0%A4%A=%ZZ;;=,,=" },
    { traceparent: `${traceparentOf("c")}-${"f".repeat(5_000)}`, baggage: "constructor=1,__proto__=2" },
    { traceparent: `ff${traceparentOf("d").slice(2)}` },
  ])
    await client(odd as Record<string, string>).runs.wait(null, "agent", HELLO);

  const stored = await query(
    "select kwargs->'trace_context' as stored from threadloom.runs order by created_at",
  );
  const [first, second] = stored.map((row) => row["stored"] as Record<string, string>);
  expect(first).toMatchObject({ baggage: "tenant=blue" });
  expect(second).not.toHaveProperty("baggage");
  const attempts = () => receiver.spans.filter(({ name }) => name === "invoke_agent agent");
  await eventually("all attempts have arrived", () => attempts().length === 5);
  const traces = attempts().map(({ traceId }) => traceId);
  expect(traces).toEqual(expect.arrayContaining([traceOf("a"), traceOf("b")]));
  expect(new Set(traces).size).toBe(5);
});

test("with encryption, what a request propagates is stored encrypted, and its run is in its trace", async () => {
  const receiver = await aReceiver();
  const key = "a key of a test, of 32 bytes ...";
  const { client, query } = await startWith(receiver.url, { LANGGRAPH_AES_KEY: key });
  const { thread_id } = await client().threads.create();
  const headers = { traceparent: traceparentOf("a"), baggage: "user=canary-12" };
  await client(headers).runs.wait(thread_id, "agent", HELLO);
  const [run] = await query("select kwargs::text as stored from threadloom.runs");
  expect(run?.["stored"]).toContain("trace_context");
  expect(run?.["stored"]).not.toContain("canary-12");
  const attempt = await eventually("the attempt has arrived", () =>
    receiver.spans.find(({ name }) => name === "invoke_agent agent"),
  );
  expect(attempt.traceId).toBe(traceOf("a"));
});

test("requests of one connection have traces of their own, also when they are sent at once", async () => {
  const receiver = await aReceiver();
  const { url } = await startWith(receiver.url);
  const { port } = new URL(url);
  const search = (path: string, more = "") =>
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n${more}content-type: application/json\r\ncontent-length: 2\r\n\r\n{}`;
  const socket = connect(Number(port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  let answers = "";
  socket.on("data", (data: Buffer) => (answers += data.toString("latin1")));
  const answered = (count: number) =>
    eventually(`${count} answers`, () => answers.split("HTTP/1.1 200").length > count);
  socket.write(search("/threads/search", `traceparent: ${traceparentOf("a")}\r\n`));
  await answered(1);
  socket.write(search("/threads/count"));
  await answered(2);
  socket.write(
    search("/assistants/search", `traceparent: ${traceparentOf("b")}\r\n`) + search("/assistants/count"),
  );
  await answered(4);
  const requests = () => receiver.spans.filter(({ name }) => name.startsWith("POST "));
  await eventually("all spans have arrived", () => requests().length >= 4);
  const byName = (name: string) => requests().find((span) => span.name === `POST ${name}`);
  expect(byName("/threads/search")?.traceId).toBe(traceOf("a"));
  expect(byName("/assistants/search")?.traceId).toBe(traceOf("b"));
  expect(byName("/threads/count")?.parent ?? "").toBe("");
  expect(byName("/assistants/count")?.parent ?? "").toBe("");
  expect(new Set(requests().map(({ traceId }) => traceId)).size).toBe(4);
});

test("spans of clients that leave end, and runs of all protocols but WebSockets are in the traces of their requests", async () => {
  const receiver = await aReceiver();
  const { url, client } = await startWith(receiver.url, { GATE: "/nowhere" });
  const { thread_id } = await client().threads.create();
  const leaving = new AbortController();
  const left = fetch(`${url}/threads/${thread_id}/runs/wait`, {
    method: "POST",
    headers: { "content-type": "application/json", traceparent: traceparentOf("a") },
    body: JSON.stringify({ assistant_id: "held", input: {}, on_disconnect: "cancel" }),
    signal: leaving.signal,
  }).catch(() => undefined);
  await eventually("the run is there", async () => (await client().runs.list(thread_id)).length === 1);
  leaving.abort();
  await left;

  const post = (path: string, digit: string, body: unknown, more: Record<string, string> = {}) =>
    fetch(`${url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", traceparent: traceparentOf(digit), ...more },
      body: JSON.stringify(body),
    }).then((answer) => answer.text());
  await post("/runs/batch", "b", [{ assistant_id: "agent", ...HELLO }]);
  const call = { name: "agent", arguments: HELLO.input };
  await post(
    "/mcp",
    "c",
    { jsonrpc: "2.0", id: 1, method: "tools/call", params: call },
    { accept: "application/json, text/event-stream" },
  );
  await post("/agui/agent", "d", {
    threadId: crypto.randomUUID(),
    runId: "1",
    messages: [{ id: "1", role: "user", content: "hello" }],
  });
  const [assistant] = await client().assistants.search({ graphId: "agent" });
  const message = { messageId: "1", role: "user", kind: "message", parts: [{ kind: "text", text: "hello" }] };
  await post(`/a2a/${assistant!.assistant_id}`, "e", {
    jsonrpc: "2.0",
    id: 1,
    method: "message/send",
    params: { message },
  });
  const thread = await client().threads.create();
  const socket = new WebSocket(`${url.replace("http", "ws")}/threads/${thread.thread_id}/stream/events`, {
    headers: { traceparent: traceparentOf("f") },
  });
  await once(socket, "open");
  socket.send(
    JSON.stringify({
      id: 1,
      method: "run.start",
      params: { assistant_id: "agent", input: HELLO.input },
    }),
  );
  const hasRun = (digit: string) =>
    receiver.spans.some(
      ({ name, traceId }) => name.startsWith("invoke_agent ") && traceId === traceOf(digit),
    );
  const ofSocket = await eventually("the run of the socket has arrived", () =>
    receiver.spans.find(
      ({ name, attributes }) =>
        name === "invoke_agent agent" && attributes["gen_ai.conversation.id"] === thread.thread_id,
    ),
  );
  expect(ofSocket.traceId).not.toBe(traceOf("f"));
  for (const digit of ["a", "b", "c", "d", "e"])
    await eventually(`the run of ${digit} has arrived`, () => hasRun(digit));
  socket.terminate();
  const hasRequest = (digit: string) =>
    receiver.spans.some(({ parent, traceId }) => parent === "b7ad6b7169203331" && traceId === traceOf(digit));
  for (const digit of ["a", "f"])
    await eventually(`the request of ${digit} has arrived`, () => hasRequest(digit));
});

test("a receiver that fails, hangs or hangs up delays no run, and the log stays short", async () => {
  let requests = 0;
  const receiver = createServer((request, response) => {
    requests += 1;
    request.resume();
    if (requests % 3 === 0) request.socket.destroy();
    else if (requests % 3 === 1) response.writeHead(500).end(`failure ${requests}: ${"x".repeat(10_000)}`);
  });
  receiver.listen(0, "127.0.0.1");
  await once(receiver, "listening");
  onTestFinished(() => {
    receiver.closeAllConnections();
    receiver.close();
  });
  const { port } = receiver.address() as AddressInfo;
  const { server, client } = await startWith(`http://127.0.0.1:${port}`, {
    OTEL_BSP_SCHEDULE_DELAY: "5",
    OTEL_EXPORTER_OTLP_TIMEOUT: "100",
    OTEL_BSP_EXPORT_TIMEOUT: "100",
    OTEL_BSP_MAX_QUEUE_SIZE: "10",
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "5",
  });
  const complaints = () => logOf(server).filter(({ msg }) => msg === "OpenTelemetry reports a problem");
  await eventually("many exports have failed", async () => {
    await client().runs.wait(null, "agent", HELLO);
    return requests > 12 && complaints().length > 0;
  });
  await client({ traceparent: traceparentOf("a") })
    .runs.wait(null, "failing", { input: {} })
    .catch(() => undefined);
  const failure = await eventually("the failure is logged", () =>
    logOf(server).find(({ msg }) => msg === "the graph failed"),
  );
  expect(failure["trace_id"]).toBe(traceOf("a"));
  expect(complaints().length).toBeLessThan(12);
  for (const { reason } of complaints()) expect(String(reason).length).toBeLessThanOrEqual(500);
  // Strict readers of JSON refuse lines that name a field twice.
  for (const line of server.output().split("\n"))
    expect(line.split('"trace_id":').length, line).toBeLessThanOrEqual(2);
});
