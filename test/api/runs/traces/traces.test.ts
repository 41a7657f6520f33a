import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { Span, Trace } from "../../../../src/api/runs/traces/schemas.ts";
import { isAtGate, openGate } from "../../../fixtures/gates.ts";
import type { Api } from "../../../helpers/api.ts";
import type { TestServer } from "../../../helpers/app.ts";
import { eventually } from "../../../helpers/conditions.ts";
import { query } from "../../../helpers/query.ts";
import { onServer } from "../../../helpers/servers.ts";
import { USAGE } from "./model.ts";
import { reference, type ReferenceSpan } from "./reference.ts";

const GRAPHS = fileURLToPath(new URL("./langgraph.json", import.meta.url));

let server: TestServer;
let api: Api;
onServer({ graphConfigFile: GRAPHS }, (opened) => ({ server, api } = opened));

interface Traced {
  threadId: string;
  runId: string;
  trace: Trace;
  spans: Span[];
}

const traceOf = async (threadId: string, runId: string): Promise<Trace> =>
  (await api.get<Trace>(`/threads/${threadId}/runs/${runId}/trace`)).body;

const traced = async (graph: string, fields: object = {}, threadId?: string): Promise<Traced> => {
  const thread = threadId ?? (await api.aThread());
  const run = await api.aRun(thread, { assistant_id: graph, input: { count: 1, messages: [] }, ...fields });
  await api.untilRunIs(thread, run.run_id, "success", "error");
  const trace = await traceOf(thread, run.run_id);
  return { threadId: thread, runId: run.run_id, trace, spans: trace.attempts.flatMap(({ spans }) => spans) };
};

/** Comparable with what callbacks said. */
const asReference = (spans: readonly Span[]): ReferenceSpan[] =>
  spans.map(({ kind, name, parent, status }) => {
    const outer = spans.find(({ id }) => id === parent);
    return { kind, name, inside: outer === undefined ? null : `${outer.kind} ${outer.name}`, status };
  });
const sorted = (spans: readonly ReferenceSpan[]): string[] =>
  spans.map((span) => JSON.stringify(span)).sort();

test.each([
  "twoSteps",
  "branches",
  "subgraphs",
  "sends",
  "tools",
  "brokenTool",
  "retries",
  "asks",
  "failing",
  "streams",
  "commands",
])("the trace of '%s' has the spans that callbacks see", async (graph) => {
  const { runId, spans } = await traced(graph);
  expect(spans.length).toBeGreaterThan(0);
  expect(sorted(asReference(spans))).toEqual(sorted(reference.spansOf(runId)));
});

test("a graph of the functional API has its tasks inside its entry point", async () => {
  const { spans } = await traced("functional");
  expect(asReference(spans)).toEqual([
    { kind: "node", name: "functional", inside: null, status: "success" },
    { kind: "node", name: "double", inside: "node functional", status: "success" },
    { kind: "node", name: "double", inside: "node functional", status: "success" },
  ]);
});

test("spans lie inside the spans around them, and inside the run", async () => {
  const { spans, trace } = await traced("tools");
  for (const { parent, start_ms: start, end_ms: end } of spans) {
    expect(end).toBeGreaterThanOrEqual(start);
    const outer = spans.find(({ id }) => id === parent);
    expect(start).toBeGreaterThanOrEqual(outer?.start_ms ?? 0);
    expect(end).toBeLessThanOrEqual(outer?.end_ms ?? (trace.run_ms ?? 0) + 100);
  }
  expect(trace).toMatchObject({ status: "success", answered_after_ms: null });
});

test("a call of a model has its model, tokens, and stop reason; a streamed one the time of its first token", async () => {
  const { spans } = await traced("streams");
  const { total_tokens: _, input_token_details: input, output_token_details: output, ...tokens } = USAGE;
  const usage = {
    ...tokens,
    cache_read_tokens: input.cache_read,
    cache_creation_tokens: input.cache_creation,
    reasoning_tokens: output.reasoning,
  };
  const [first] = spans.filter(({ kind }) => kind === "model");
  const expected = {
    name: "streaming",
    model: "streaming-2026",
    provider: "tests",
    stop_reason: "stop",
    usage,
  };
  expect(first).toMatchObject(expected);
  expect(first?.first_token_ms).toBeGreaterThanOrEqual(first!.start_ms);
});

test("a call of a tool has its arguments and its result", async () => {
  const { spans } = await traced("tools");
  expect(spans.find(({ name }) => name === "add")).toMatchObject({
    kind: "tool",
    tool_call_id: "call-0",
    arguments: '{"a":1,"b":2}',
    result: "3",
  });
});

test("an error has its type, its message, and its place in the project", async () => {
  const { spans, trace } = await traced("failing");
  expect(trace.status).toBe("error");
  expect(spans.find(({ kind }) => kind === "model")?.error).toEqual({
    type: "Error",
    message: "the model is not there",
    at: expect.stringMatching(/^runs\/traces\/model\.ts:\d+:\d+$/) as string,
  });
});

test("a run that brings an answer shows how long the question waited", async () => {
  const { threadId, spans } = await traced("asks");
  expect(spans.map(({ status }) => status)).toEqual(["interrupted"]);
  const { trace } = await traced("asks", { input: undefined, command: { resume: "yes" } }, threadId);
  expect(trace.answered_after_ms).toBeGreaterThan(0);
  expect(trace.attempts[0]?.spans.map(({ status }) => status)).toEqual(["success"]);
});

test("usage is summed by model", async () => {
  const { trace } = await traced("tools");
  expect(trace.usage).toMatchObject([
    { model: "calling-2026", calls: 2, input_tokens: 22, output_tokens: 14, cost: null },
    { model: "plain-2026", calls: 1, input_tokens: 11, cache_read_tokens: 5, reasoning_tokens: 2 },
  ]);
});

test("the trace of a run that goes on can be read", async () => {
  const threadId = await api.aThread();
  const label = threadId;
  const run = await api.aRun(threadId, { assistant_id: "held", input: { count: 1, label } });
  await eventually("the run waits", () => isAtGate(label));
  const statuses = async (): Promise<string[]> =>
    (await traceOf(threadId, run.run_id)).attempts[0]!.spans.map(({ name, status }) => `${name} ${status}`);
  await eventually("the trace shows the waiting node", async () =>
    (await statuses()).includes("waits running"),
  );
  expect(await statuses()).toEqual(["said success", "plain success", "waits running"]);
  openGate(label);
  await api.untilRunIs(threadId, run.run_id, "success");
  expect(await statuses()).toEqual(["said success", "plain success", "waits success"]);
});

test("a trace has at most 256 KB; further spans are counted", async () => {
  const { threadId, trace } = await traced("many");
  const [attempt] = trace.attempts;
  expect(attempt!.spans.length + attempt!.dropped_spans).toBe(3_001);
  expect(attempt!.dropped_spans).toBeGreaterThan(0);
  const sql = "select sum(octet_length(spans))::int as bytes from threadloom.run_traces where thread_id = $1";
  const [stored] = await query<{ bytes: number }>(server, sql, [threadId]);
  expect(stored?.bytes).toBeLessThanOrEqual(256 * 1024);
});

test("the trace is deleted with its run, and with its thread; the usage stays", async () => {
  const { threadId, runId } = await traced("tools");
  const rows = async (table: string): Promise<number> => {
    const sql = `select count(*)::int as rows from threadloom.${table} where run_id = $1`;
    const [found] = await query<{ rows: number }>(server, sql, [runId]);
    return found!.rows;
  };
  await api.remove(`/threads/${threadId}/runs/${runId}`);
  expect(await rows("run_traces")).toBe(0);
  expect((await api.get(`/threads/${threadId}/runs/${runId}/trace`)).status).toBe(404);
  const other = await traced("tools");
  await api.remove(`/threads/${other.threadId}`);
  const sql = "select count(*)::int as rows from threadloom.run_traces where thread_id = $1";
  expect(await query(server, sql, [other.threadId])).toEqual([{ rows: 0 }]);
  expect(await rows("model_usage")).toBe(2);
});

test("a threadless run leaves its usage", async () => {
  const rows = async (): Promise<number> => {
    const sql = "select count(*)::int as rows from threadloom.model_usage where model = 'streaming-2026'";
    return (await query<{ rows: number }>(server, sql))[0]!.rows;
  };
  const before = await rows();
  await api.post("/runs/wait", { assistant_id: "streams", input: { count: 1 } });
  expect(await rows()).toBe(before + 1);
});

test("calls of models and of tools are in the metrics", async () => {
  const figure = async (name: string): Promise<number> => {
    const text = await (await fetch(`${server.url}/metrics`)).text();
    const line = text.split("\n").find((each) => each.startsWith(`threadloom_${name} `));
    return Number(line?.split(" ")[1] ?? 0);
  };
  const names = [
    'model_call_seconds_count{model="broken"}',
    'model_call_errors_total{model="broken"}',
    'tool_call_seconds_count{tool="fail"}',
    'tool_call_errors_total{tool="fail"}',
    'model_tokens_total{model="calling-2026",direction="output"}',
  ];
  const before = await Promise.all(names.map(figure));
  await traced("failing");
  await traced("brokenTool");
  const after = await Promise.all(names.map(figure));
  expect(after.map((count, index) => count - before[index]!)).toEqual([1, 1, 1, 1, 14]);
});
