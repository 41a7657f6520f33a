import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createMetrics } from "../../../src/platform/metrics/metrics.ts";
import { apiOf, saying, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer, type TestServerOptions } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";

const TWO_STEPS = { assistant_id: "two-step", input: saying("hello") };

let server: TestServer;
let api: Api;
const closers: (() => Promise<void>)[] = [];
const open = async (options: TestServerOptions = {}): Promise<TestServer> => {
  const opened = await startTestServer(options);
  closers.push(() => opened.close());
  return opened;
};
beforeEach(async () => {
  server = await open();
  api = apiOf(server);
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** The samples of a scrape, by name and labels as Prometheus receives them. */
const parse = (text: string): Map<string, number> =>
  new Map(
    text
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => {
        const end = line.lastIndexOf(" ");
        return [line.slice(0, end), Number(line.slice(end + 1))];
      }),
  );
const scrape = async (from: { url: string } = server): Promise<Map<string, number>> =>
  parse(await (await fetch(`${from.url}/metrics`)).text());
const stream = async (thread: string, body: object): Promise<string> => {
  const answer = await fetch(`${server.url}/threads/${thread}/runs/stream`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return await answer.text();
};
/** Answers are counted when they have closed, which may be after the client has them. */
const scraped = (name: string, value: number, from = server): Promise<Map<string, number>> =>
  eventually(`${name} is ${value}`, async () => {
    const samples = await scrape(from);
    return samples.get(name) === value && samples;
  });

describe("runs", () => {
  test("are counted by graph and status, with their waiting time and duration", async () => {
    const thread = await api.aThread();
    for (const graph of ["two-step", "two-step", "failing"])
      await api.post(`/threads/${thread}/runs/wait`, { ...TWO_STEPS, assistant_id: graph });
    const samples = await scrape();
    expect(samples.get('threadloom_runs_ended_total{graph="two-step",status="success"}')).toBe(2);
    expect(samples.get('threadloom_runs_ended_total{graph="failing",status="error"}')).toBe(1);
    for (const name of ["run_queue_seconds", "run_seconds"]) {
      expect(samples.get(`threadloom_${name}_count{graph="two-step"}`)).toBe(2);
      expect(samples.get(`threadloom_${name}_bucket{le="+Inf",graph="failing"}`)).toBe(1);
      expect(samples.get(`threadloom_${name}_sum{graph="two-step"}`)).toBeLessThan(60);
    }
  });

  test("that are streamed show how long their first event took, and what was logged", async () => {
    const thread = await api.aThread();
    await stream(thread, { ...TWO_STEPS, stream_resumable: true });
    await stream(thread, { ...TWO_STEPS, assistant_id: "tokens" });
    const samples = await scrape();
    expect(samples.get('threadloom_run_first_event_seconds_count{graph="two-step"}')).toBe(1);
    expect(samples.get('threadloom_run_first_event_seconds_count{graph="tokens"}')).toBe(1);
    expect(samples.get("threadloom_event_log_events_total")).toBeGreaterThan(1);
    expect(samples.get("threadloom_event_log_append_seconds_count")).toBeGreaterThan(0);
    expect(samples.get("threadloom_checkpoint_write_seconds_count")).toBeGreaterThan(0);
  });

  test("without a reader have no time to a first event, and neither has a run that fails before", async () => {
    const thread = await api.aThread();
    const { run_id } = (await api.post<{ run_id: string }>(`/threads/${thread}/runs`, TWO_STEPS)).body;
    await api.get(`/threads/${thread}/runs/${run_id}/join`);
    const failed = { ...TWO_STEPS, assistant_id: "failing", stream_mode: ["custom"] };
    expect(await stream(thread, failed)).toContain("event: error");
    const samples = await scraped('threadloom_runs_ended_total{graph="two-step",status="success"}', 1);
    expect(samples.get('threadloom_runs_ended_total{graph="failing",status="error"}')).toBe(1);
    expect([...samples.keys()].filter((name) => name.includes("first_event"))).toEqual([]);
  });

  test("that are cancelled while they wait are counted, and graphs of other servers count as other", async () => {
    const thread = await api.aThread();
    await query(
      server,
      `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy)
       values (gen_random_uuid(), $1, gen_random_uuid(), 'elsewhere', 'pending', '{}', 'enqueue')`,
      [thread],
    );
    await query(server, "update threadloom.threads set unfinished_runs = 1 where thread_id = $1", [thread]);
    await api.post("/runs/cancel", { status: "all" });
    await scraped('threadloom_runs_ended_total{graph="other",status="interrupted"}', 1);
  });
});

describe("requests", () => {
  test("are counted by the pattern of their route and the class of their status", async () => {
    const thread = await api.aThread();
    await api.get(`/threads/${thread}`);
    await api.get(`/threads/${crypto.randomUUID()}`);
    await api.get(`/nowhere/${crypto.randomUUID()}`);
    const samples = await scraped(
      'threadloom_http_requests_total{method="GET",route="unknown",status="4xx"}',
      1,
    );
    const route = "/threads/:thread_id";
    expect(samples.get(`threadloom_http_requests_total{method="GET",route="${route}",status="2xx"}`)).toBe(1);
    expect(samples.get(`threadloom_http_requests_total{method="GET",route="${route}",status="4xx"}`)).toBe(1);
    expect(samples.get(`threadloom_http_request_seconds_count{method="GET",route="${route}"}`)).toBe(2);
  });

  test("that stream or wait for a run are counted without their duration", async () => {
    const thread = await api.aThread();
    await api.post(`/threads/${thread}/runs/wait`, TWO_STEPS);
    const route = "/threads/:thread_id/runs/wait";
    const samples = await scraped(
      `threadloom_http_requests_total{method="POST",route="${route}",status="2xx"}`,
      1,
    );
    expect(samples.has(`threadloom_http_request_seconds_count{method="POST",route="${route}"}`)).toBe(false);
  });

  test("whose clients leave before the answer are aborted", async () => {
    const thread = await api.aThread();
    const locker = new pg.Client({ connectionString: server.connectionString });
    await locker.connect();
    await locker.query("begin");
    await locker.query("lock table threadloom.threads in access exclusive mode");
    const leaving = new AbortController();
    const left = fetch(`${server.url}/threads/${thread}`, { signal: leaving.signal }).catch(() => undefined);
    await eventually("the request waits for the lock", async () => {
      const { rows } = await locker.query("select from pg_locks where not granted");
      return rows.length > 0;
    });
    leaving.abort();
    await left;
    const labels = 'method="GET",route="/threads/:thread_id",status="aborted"';
    await eventually("the request is counted", async () =>
      (await (await fetch(`${server.url}/metrics`)).text()).includes(`{${labels}} 1`),
    );
    await locker.end();
  });
});

test("a server shows its versions, its start, its pool, and the sizes of its tables", async () => {
  const samples = await scrape();
  const [build] = [...samples].filter(([name]) => name.startsWith("threadloom_build_info"));
  expect(build?.[0]).toMatch(
    /\{version="\d+\.\d+\.\d+",langgraph="\d+\.[^"]+",node="v\d+\.[^"]+",role="all"\}$/,
  );
  expect(build?.[1]).toBe(1);
  expect(Math.abs(samples.get("threadloom_start_time_seconds")! - Date.now() / 1_000)).toBeLessThan(300);
  expect(samples.get("threadloom_database_connections_max")).toBe(10);
  expect(samples.get('threadloom_table_bytes{table="checkpoints"}')).toBeGreaterThan(0);
  expect(samples.get('threadloom_table_bytes{table="run_events"}')).toBeGreaterThan(0);
});

test("push notifications are counted while they wait", async () => {
  const thread = await api.aThread();
  await api.post(`/threads/${thread}/runs/wait`, TWO_STEPS);
  expect((await scrape()).get("threadloom_pushes_pending")).toBe(0);
  await query(
    server,
    `insert into threadloom.deliveries (delivery_id, kind, thread_id, task_run_id, configuration, caller, receiver, state, due_at)
     select gen_random_uuid(), 'push', thread_id, run_id, '{}', '', '', state, now() + interval '1 hour'
     from threadloom.runs, unnest(array['idle', 'pending', 'pending', 'delivered']) as state`,
  );
  const samples = await scrape();
  expect(samples.get("threadloom_pushes_pending")).toBe(2);
  expect(samples.get('threadloom_push_tries_total{result="delivered"}')).toBe(0);
});

test("two servers of a process count apart, and each shows what the database counts", async () => {
  const other = await open({ connectionString: server.connectionString, role: "api" });
  await api.post(`/threads/${await api.aThread()}/runs/wait`, TWO_STEPS);
  const ended = 'threadloom_runs_ended_total{graph="two-step",status="success"}';
  expect((await scrape()).get(ended)).toBe(1);
  const samples = await scrape(other);
  expect(samples.has(ended)).toBe(false);
  expect(samples.get('threadloom_runs{status="pending"}')).toBe(0);
});

describe("labels", () => {
  const textOf = async (metrics: ReturnType<typeof createMetrics>) => parse(await metrics.registry.metrics());
  const call = { seconds: 1, failed: false };

  test("have the names of the first fifty models and hundred tools; more count as other", async () => {
    const metrics = createMetrics();
    for (let index = 0; index < 200; index += 1) {
      metrics.modelCall({ ...call, model: `model-${index}` });
      metrics.toolCall({ ...call, tool: `tool-${index}`, failed: true });
    }
    const samples = await textOf(metrics);
    expect(samples.get('threadloom_model_call_seconds_count{model="model-49"}')).toBe(1);
    expect(samples.get('threadloom_model_call_seconds_count{model="other"}')).toBe(150);
    expect(samples.get('threadloom_tool_call_errors_total{tool="other"}')).toBe(100);
    expect(samples.size).toBeLessThan(5_000);
  });

  test("may be any name of a graph, such as constructor, and long or broken ones count as other", async () => {
    const metrics = createMetrics();
    const names = ["constructor", "__proto__", 'a"b\\c\nd', "x".repeat(101), "\ud800", "\udbff"];
    for (const model of names) metrics.modelCall({ ...call, model });
    const samples = await textOf(metrics);
    const counts = [...samples].filter(([name]) => name.startsWith("threadloom_model_call_seconds_count"));
    expect(counts.map(([name, count]) => [name.slice(name.indexOf("{")), count])).toEqual([
      ['{model="constructor"}', 1],
      ['{model="__proto__"}', 1],
      ['{model="a\\"b\\\\c\\nd"}', 1],
      ['{model="other"}', 3],
    ]);
  });
});

test("numbers that nobody can count are zeros: a clock jumped, or a model reported any tokens", async () => {
  const metrics = createMetrics();
  for (const inputTokens of [NaN, -1, Infinity, 5]) {
    metrics.modelCall({ model: "m", seconds: NaN, failed: true });
    metrics.tokensUsed("m", inputTokens, 2);
  }
  metrics.runBegan("g", -5);
  metrics.runEnded("g", "success", Infinity);
  const samples = parse(await metrics.registry.metrics());
  expect(samples.get('threadloom_model_tokens_total{model="m",direction="input"}')).toBe(5);
  expect(samples.get('threadloom_model_tokens_total{model="m",direction="output"}')).toBe(8);
  expect(samples.get('threadloom_model_call_errors_total{model="m"}')).toBe(4);
  expect(samples.get('threadloom_run_queue_seconds_sum{graph="g"}')).toBe(0);
});
