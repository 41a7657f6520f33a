import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@langchain/langgraph-sdk";
import Fastify from "fastify";
import { expect, onTestFinished, test } from "vitest";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase } from "../../helpers/database.ts";
import { logOf } from "../../helpers/project.ts";
import { spawnServer, type ServerProcess } from "../../helpers/server-process.ts";
import { temporaryFolder } from "../../helpers/temporary-folder.ts";
import { aReceiver, type ReceivedSpan } from "./receiver.ts";

const GRAPHS = fileURLToPath(new URL("./langgraph.json", import.meta.url));
const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
const TRACEPARENT = `00-${TRACE_ID}-b7ad6b7169203331-01`;

const aDatabase = async () => {
  const database = await freshDatabase();
  onTestFinished(() => database.drop());
  return database;
};

const startWith = (
  database: { connectionString: string },
  endpoint: string | undefined,
  argv: string[],
  environment: Record<string, string> = {},
): ServerProcess => {
  const server = spawnServer(["--config", GRAPHS, "--port", "0", ...argv], {
    DATABASE_URL: database.connectionString,
    ...(endpoint === undefined ? {} : { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }),
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_BSP_SCHEDULE_DELAY: "50",
    OTEL_METRIC_EXPORT_INTERVAL: "200",
    OTEL_METRIC_EXPORT_TIMEOUT: "100",
    LEASE_SECONDS: "3",
    ...environment,
  });
  onTestFinished(() => server.kill());
  return server;
};

const clientOf = (apiUrl: string, headers: Record<string, string> = {}) =>
  new Client({ apiUrl, apiKey: null, defaultHeaders: headers });

const complaintsOf = (server: ServerProcess) =>
  logOf(server).filter(({ msg }) => msg === "OpenTelemetry reports a problem");

/** The names from the root to the span. */
const pathOf = (spans: ReceivedSpan[], span: ReceivedSpan): string => {
  const above = spans.find(({ spanId }) => spanId === span.parent);
  return above === undefined ? span.name : `${pathOf(spans, above)} > ${span.name}`;
};
const pathsOf = (spans: ReceivedSpan[]): string[] => spans.map((span) => pathOf(spans, span)).sort();

const ATTEMPT = "POST /threads/:thread_id/runs/wait > create_run > invoke_agent agent";
const TREE = [
  "POST /threads/:thread_id/runs/wait",
  "POST /threads/:thread_id/runs/wait > create_run",
  ATTEMPT,
  `${ATTEMPT} > node inner`,
  `${ATTEMPT} > node inner > node ask`,
  `${ATTEMPT} > node inner > node ask > chat plain`,
  `${ATTEMPT} > node plan`,
  `${ATTEMPT} > node plan > execute_tool work`,
  `${ATTEMPT} > node plan > execute_tool work > work in a tool`,
  `${ATTEMPT} > node plan > work in a node`,
].sort();

test.each([
  ["in the server", []],
  ["in a graph process", ["--workers", "1"]],
])(
  "a run %s is a tree of spans below its request, and the graph's own spans are in it",
  async (_where, argv) => {
    const receiver = await aReceiver();
    const server = startWith(await aDatabase(), receiver.url, argv);
    const client = clientOf(await server.address(), { traceparent: TRACEPARENT });
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "agent", {
      input: { messages: [{ role: "user", content: "hunter2" }] },
    });

    const ofTrace = () =>
      receiver.spans.filter(({ traceId, name }) => traceId === TRACE_ID && name !== "POST /threads");
    await eventually("all spans have arrived", () => ofTrace().length >= TREE.length);
    expect(pathsOf(ofTrace())).toEqual(TREE);
    const named = (name: string) => ofTrace().find((span) => span.name === name)!;
    expect(named("POST /threads/:thread_id/runs/wait")).toMatchObject({
      parent: "b7ad6b7169203331",
      service: "threadloom",
      attributes: { "http.response.status_code": 200, "url.path": `/threads/${thread_id}/runs/wait` },
    });
    const [run] = await client.runs.list(thread_id);
    expect(named("invoke_agent agent").attributes).toMatchObject({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.name": "agent",
      "gen_ai.conversation.id": thread_id,
      "gen_ai.usage.input_tokens": 11,
      "threadloom.run.id": run?.run_id,
      "threadloom.run.attempt": 1,
      "threadloom.run.status": "success",
    });
    expect(named("chat plain").attributes).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "tests",
      "gen_ai.request.model": "plain",
      "gen_ai.response.model": "plain-2026",
      "gen_ai.response.finish_reasons": ["stop"],
      "gen_ai.usage.input_tokens": 11,
      "gen_ai.usage.output_tokens": 7,
    });
    // What users say is not exported, and clients do not see the stored context.
    expect(JSON.stringify(receiver.spans)).not.toContain("hunter2");
    expect(JSON.stringify(run)).not.toContain("trace_context");

    await eventually("metrics have arrived", () => receiver.metrics.has("gen_ai.invoke_agent.duration"));
    expect(receiver.metrics.get("gen_ai.client.token.usage")).toMatchObject({
      unit: "{token}",
      points: [
        { "gen_ai.request.model": "plain-2026", "gen_ai.token.type": "input", count: 1, sum: 11 },
        { "gen_ai.token.type": "output", count: 1, sum: 7 },
      ],
    });
    expect(receiver.metrics.get("gen_ai.execute_tool.duration")?.points).toMatchObject([
      { "gen_ai.tool.name": "work", count: 1 },
    ]);

    const lineOf = (searched: string) =>
      logOf(server).find(({ msg, text }) => msg === searched || text === searched);
    await eventually("the run's line is there", () => lineOf("run ended"));
    expect(lineOf("run ended")).toMatchObject({ trace_id: TRACE_ID, slowest_node: expect.any(String) });
    await eventually("the graph's line is there", () => lineOf("a line of the graph"));
    expect(lineOf("a line of the graph")).toMatchObject({
      trace_id: TRACE_ID,
      span_id: named("node plan").spanId,
    });
  },
);

test("contents are exported when the operator asks for them", async () => {
  const receiver = await aReceiver();
  const server = startWith(await aDatabase(), receiver.url, [], {
    OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true",
    OTEL_SERVICE_NAME: "my agents",
  });
  const client = clientOf(await server.address());
  await client.runs.wait(null, "agent", { input: { messages: [{ role: "user", content: "how are you?" }] } });
  const named = (name: string) => receiver.spans.find((span) => span.name === name);
  const model = await eventually("the model's span has arrived", () => named("chat plain"));
  expect(model.service).toBe("my agents");
  expect(JSON.parse(model.attributes["gen_ai.input.messages"] as string)).toEqual([
    { role: "user", parts: [{ type: "text", content: "how are you?" }] },
  ]);
  expect(JSON.parse(model.attributes["gen_ai.output.messages"] as string)).toEqual([
    { role: "assistant", parts: [{ type: "text", content: "one two three" }] },
  ]);
  const tool = await eventually("the tool's span has arrived", () => named("execute_tool work"));
  expect(tool.attributes).toMatchObject({
    "gen_ai.tool.call.arguments": '{"secret":"hunter2"}',
    "gen_ai.tool.call.result": "done: hunter2",
  });
});

test("a run that another server executes, and its next attempt after a kill -9, are children of the request", async () => {
  const receiver = await aReceiver();
  const database = await aDatabase();
  const folder = await temporaryFolder();
  onTestFinished(() => folder.remove());
  const GATE = join(folder.path, "gate");
  const api = startWith(database, receiver.url, ["--role", "api"]);
  const client = clientOf(await api.address(), { traceparent: TRACEPARENT });
  const first = startWith(database, receiver.url, ["--role", "worker"], { GATE });
  await first.address();
  const { thread_id } = await client.threads.create();
  const { run_id } = await client.runs.create(thread_id, "held", { input: {} });
  const status = async () => (await client.runs.get(thread_id, run_id)).status;
  await eventually("the run is running", async () => (await status()) === "running");
  await first.kill();
  await writeFile(GATE, "");
  await startWith(database, receiver.url, ["--role", "worker"], { GATE }).address();
  await client.runs.join(thread_id, run_id);

  const attempt = await eventually("the attempt has arrived", () =>
    receiver.spans.find(({ name }) => name === "invoke_agent held"),
  );
  expect(attempt).toMatchObject({
    traceId: TRACE_ID,
    attributes: { "threadloom.run.attempt": 2, "threadloom.run.status": "success" },
  });
  await eventually("the request has arrived", () =>
    pathOf(receiver.spans, attempt).startsWith("POST /threads/:thread_id/runs > create_run > "),
  );
});

test("a failed run's spans are errors without their messages; a run without a request is a trace of its own", async () => {
  const receiver = await aReceiver();
  const server = startWith(await aDatabase(), receiver.url, []);
  const client = clientOf(await server.address());
  await client.runs.wait(null, "failing", { input: {}, raiseError: false } as never);
  const named = (name: string) => receiver.spans.find((span) => span.name === name);
  const node = await eventually("the node's span has arrived", () => named("node fail"));
  expect(node).toMatchObject({ status: { code: 2 }, attributes: { "error.type": "RangeError" } });
  const attempt = await eventually("the attempt's span has arrived", () => named("invoke_agent failing"));
  expect(attempt).toMatchObject({
    status: { code: 2 },
    attributes: { "error.type": "RangeError", "threadloom.run.status": "error" },
  });
  expect(JSON.stringify(receiver.spans)).not.toContain("hunter2");
});

test("a dead receiver delays no run, and the log says once that nothing can be exported", async () => {
  const server = startWith(await aDatabase(), "http://127.0.0.1:9", []);
  const client = clientOf(await server.address());
  for (let run = 0; run < 5; run += 1)
    await client.runs.wait(null, "agent", { input: { messages: [{ role: "user", content: "hello" }] } });
  const complaints = () => complaintsOf(server);
  await eventually("the log says it", () => complaints().length > 0);
  server.child.kill("SIGTERM");
  expect(await server.exit()).toBe(0);
  expect(complaints().length).toBeLessThan(10);
  // A problem of the exporter belongs to no request.
  expect(complaints().filter(({ trace_id }) => trace_id !== undefined)).toEqual([]);
});

test("the log says in a sentence why a receiver refuses, and what it answered", async () => {
  const app = Fastify();
  app.addContentTypeParser("*", (_request, _body, done) => done(null));
  app.post("/v1/traces", (_request, reply) => reply.code(401).send("no such key"));
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  onTestFinished(() => app.close());
  const server = startWith(await aDatabase(), url, [], { OTEL_METRICS_EXPORTER: "none" });
  await clientOf(await server.address()).threads.create();
  await eventually("the log says it", () => complaintsOf(server).length > 0);
  expect(complaintsOf(server)).toMatchObject([{ reason: "Unauthorized: no such key" }]);
});

test.each([
  ["traces", { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "/v1/traces" }],
  ["metrics", { OTEL_EXPORTER_OTLP_ENDPOINT: "", OTEL_TRACES_EXPORTER: "none" }],
])(
  "only %s are exported if the variables ask for no more, and nothing complains",
  async (signal, variables) => {
    const receiver = await aReceiver();
    const environment = Object.entries(variables).map(([name, value]) => [
      name,
      name.endsWith("ENDPOINT") ? receiver.url + value : value,
    ]);
    const server = startWith(await aDatabase(), undefined, [], Object.fromEntries(environment));
    await clientOf(await server.address()).threads.create();
    const received = () => ({ traces: receiver.spans.length > 0, metrics: receiver.metrics.size > 0 });
    await eventually("it has arrived", () => received()[signal as "traces" | "metrics"]);
    server.child.kill("SIGTERM");
    expect(await server.exit()).toBe(0);
    expect(received()).toEqual({ traces: signal === "traces", metrics: signal === "metrics" });
    expect(complaintsOf(server)).toEqual([]);
    expect(logOf(server).find(({ msg }) => msg === "exporting by OpenTelemetry")).toMatchObject({
      signals: [signal],
    });
  },
);
